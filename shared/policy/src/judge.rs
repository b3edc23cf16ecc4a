use layout::{Sha256, Verified};
use seal::PublicKey;

use crate::{ImageName, Rejection, requirement::Requirement};

/// What the signatures of one image have to be.
#[derive(Debug, Clone)]
pub struct Policy {
    image: ImageName,
    requirements: Vec<Requirement>,
    /// [`Policy::takes_manifests`].
    takes_manifests: bool,
}

/// Equal if the same is asked for.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.hash() == other.hash()
    }
}

impl Eq for Policy {}

/// Which signatures have to be fetched to judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wants {
    /// What cosign attaches.
    pub cosign: bool,
    /// Simple signing.
    pub simple: bool,
}

/// Signatures as they were found, nothing of them verified.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// What cosign attached.
    pub attached: Vec<Attached>,
    /// Sigstore bundles, in JSON.
    pub bundles: Vec<Vec<u8>>,
    /// OpenPGP messages.
    pub simple: Vec<Vec<u8>>,
}

/// A payload and its signature, as cosign attaches them.
#[derive(Debug, Clone)]
pub struct Attached {
    /// What is signed.
    pub payload: Vec<u8>,
    /// The signature in base64.
    pub signature: String,
}

impl Policy {
    /// One of the keys has to have signed, as `cosign verify --key` checks it.
    pub fn cosign(image: ImageName, keys: Vec<PublicKey>) -> Self {
        Self {
            image,
            requirements: vec![Requirement::Sigstore { keys, identity: None }],
            takes_manifests: false,
        }
    }

    /// All of them have to be met.
    pub(crate) const fn containers_of(image: ImageName, requirements: Vec<Requirement>) -> Self {
        Self {
            image,
            requirements,
            takes_manifests: true,
        }
    }

    /// Whether it is enough if not an index is signed, but the manifest in it that is pulled: containers/image asks for that
    /// one, `cosign verify` for the index.
    pub const fn takes_manifests(&self) -> bool {
        self.takes_manifests
    }

    /// Which signatures are needed.
    pub fn wants(&self) -> Wants {
        let any = |wanted: fn(&Requirement) -> bool| self.requirements.iter().any(wanted);
        Wants {
            cosign: any(|requirement| matches!(requirement, Requirement::Sigstore { .. })),
            simple: any(|requirement| matches!(requirement, Requirement::OpenPgp { .. })),
        }
    }

    /// What is asked for, and of which image: another hash, and what was verified before has to be verified again.
    pub fn hash(&self) -> Sha256 {
        let mut text = format!("{} {}\n", self.image, self.takes_manifests);
        self.requirements
            .iter()
            .for_each(|requirement| requirement.describe(&mut text));
        Sha256::of(text.as_bytes())
    }

    /// Judges the image with this digest by the signatures that were found for it.
    ///
    /// # Errors
    /// [`Rejection`] if one of the requirements is not fulfilled.
    pub fn judge(&self, digest: &str, found: &Found) -> Result<Verified, Rejection> {
        let mut by = Vec::new();
        for requirement in &self.requirements {
            let signed = requirement.judge((&self.image, digest), found)?;
            by.extend(signed.filter(|signed| !by.contains(signed)));
        }
        Ok(Verified {
            policy: self.hash(),
            by,
        })
    }
}

#[cfg(test)]
mod tests;
