#![doc = include_str!("../README.md")]

mod keys;
#[cfg(feature = "openpgp")]
pub mod openpgp;
mod pointer;
pub mod policy;

pub use keys::{KeyError, PublicKey, SigningKey, pae};
pub use pointer::{Signer, Trust, TrustError};
