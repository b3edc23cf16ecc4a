//! Hashes, authentication codes, random numbers and signatures: those of ring, or in a build with
//! `cfg(fips)` those of the FIPS module of AWS-LC, which has the same interface.

#[cfg(fips)]
pub use aws_lc_rs::{digest, hmac, rand, signature};
#[cfg(not(fips))]
pub use ring::{digest, hmac, rand, signature};
