#![doc = include_str!("../README.md")]

mod certificate;
mod file;
mod message;
mod packets;

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use policy::{Keyring, Keyrings, OpenPgpError, Signed};

use certificate::Certificate;

/// Reads keys and messages with rPGP.
#[derive(Debug, Clone, Copy)]
pub struct Rpgp;

/// Certificates that are trusted.
#[derive(Debug)]
struct Ring(Vec<Certificate>);

impl Keyrings for Rpgp {
    fn read(&self, files: &[Vec<u8>]) -> Result<Arc<dyn Keyring>, OpenPgpError> {
        Ok(Arc::new(Ring::read(files)?))
    }
}

impl Ring {
    fn read(files: &[impl AsRef<[u8]>]) -> Result<Self, OpenPgpError> {
        let mut certificates = Vec::new();
        for file in files {
            certificates.extend(file::certificates(file.as_ref())?);
        }
        Ok(Self(certificates))
    }
}

impl Keyring for Ring {
    fn open(&self, message: &[u8]) -> Result<Signed, OpenPgpError> {
        message::open(message, &self.0, now())
    }

    fn fingerprints(&self) -> Vec<String> {
        let mut fingerprints: Vec<_> = self.0.iter().flat_map(Certificate::signing_fingerprints).collect();
        fingerprints.sort();
        fingerprints
    }
}

/// In seconds since 1970, as OpenPGP counts.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

fn error(what: impl std::fmt::Display) -> OpenPgpError {
    OpenPgpError(what.to_string())
}

#[cfg(test)]
mod tests;
