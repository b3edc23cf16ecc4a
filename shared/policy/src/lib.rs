#![doc = include_str!("../README.md")]

mod bundle;
mod containers;
mod cosign;
mod identity;
mod judge;
mod name;
mod object;
mod openpgp;
mod payload;
mod requirement;

pub use containers::{Files, PolicyError};
pub use identity::Identity;
pub use judge::{Attached, Found, Policy, Wants};
pub use name::ImageName;
pub use openpgp::{Keyring, Keyrings, OpenPgpError, Signed};
pub use requirement::{Flaw, Rejection};
