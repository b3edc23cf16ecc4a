#![doc = include_str!("../README.md")]

mod canonical;
mod dsse;
mod pem;
mod pointer;
mod public;
mod signing;

pub use dsse::pae;
pub use pem::KeyError;
pub use pointer::{Signer, Trust, TrustError};
pub use public::{PublicKey, WrongSignature};
pub use signing::SigningKey;
