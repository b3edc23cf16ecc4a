use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

use crate::{CatalogName, ObjectRef, PREVIOUS_MAX, Ring, Sha256};

/// Maximum number of published inputs of a composed catalog.
pub const INPUTS_MAX: usize = 64;

/// Maximum number of earlier publications, or of inputs, in a document that is read. Sixteen times
/// the earlier publications that this version writes, so that a later one may remember more.
/// Readers copy and compare the list for every request, and 150,000 of them cost seconds each.
pub(crate) const LIST_READ_MAX: usize = 16 * PREVIOUS_MAX;

/// The source of a catalog and its last known revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRef {
    /// The source as it is configured: `quay.io/operatorhubio/catalog:latest`, `oci:DIR`,
    /// `dir:PATH`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The source's own version, compared for equality: for an image its digest.
    pub revision: String,
    /// The signatures of the image, if the catalog has a policy that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// Repository and tag for the image of the catalog in the registry of a site, such as
    /// `redhat/redhat-operator-index:v4.20`, if an ImageSetConfiguration names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Labels, annotations and `spec` for the CatalogSource of the catalog, if the
    /// ImageSetConfiguration has a template of it.
    #[serde(
        rename = "catalogSource",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub catalog_source: Option<Value>,
    /// Published states that a composed catalog was made of, at most [`INPUTS_MAX`]. Empty for any
    /// other catalog.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "read_short_list"
    )]
    pub inputs: Vec<SourceInput>,
    /// Place of a ring among the states of the catalog that it follows; `None` for any other
    /// catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Box<Ring>>,
}

impl SourceRef {
    /// Returns the states of other catalogs that collection keeps for this one: those that a
    /// composition was made of, and those that a ring needs. Each is a content hash and a Snapshot.
    pub fn kept_states(&self) -> impl Iterator<Item = (Sha256, ObjectRef)> {
        let inputs = self.inputs.iter();
        let inputs = inputs.map(|input| (input.content_hash, input.snapshot));
        let states = self.ring.iter().flat_map(|ring| ring.states());
        inputs.chain(states.map(|state| (state.content_hash, state.snapshot)))
    }

    /// Returns true if the catalog is a ring that has no state yet: readers do not get what the
    /// pointer names.
    pub fn is_placeholder(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.is_placeholder)
    }

    /// Returns true if the catalog is composed of another one, or follows it as a ring.
    pub fn follows(&self, catalog: &CatalogName) -> bool {
        let is_input = self.inputs.iter().any(|input| input.catalog == *catalog);
        is_input || self.ring.as_ref().is_some_and(|ring| ring.of == *catalog)
    }
}

/// Published state of a catalog of which a composed catalog was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInput {
    /// Name of the catalog, which is published in the same store.
    pub catalog: CatalogName,
    /// Its content hash, by which a composition may stay at this state.
    pub content_hash: Sha256,
    /// Its Snapshot, which collection keeps: the same state may be selected from in another way.
    pub snapshot: ObjectRef,
}

/// Signatures of an image as they were fetched, unverified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSignatures {
    /// Payloads and signatures that cosign attached.
    pub attached: Vec<AttachedSignature>,
    /// Sigstore bundles, each a JSON document.
    pub bundles: Vec<Vec<u8>>,
    /// OpenPGP messages of simple signing, binary.
    pub simple: Vec<Vec<u8>>,
}

/// Payload and signature that cosign attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedSignature {
    /// Signed bytes: a payload of simple signing.
    pub payload: Vec<u8>,
    /// Signature of the payload in base64.
    pub signature: String,
}

/// Result of verifying the signatures of a source image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Hash of the policy: another policy has another hash.
    pub policy: Sha256,
    /// Signers. Empty if the policy accepts anything.
    pub by: Vec<SignedBy>,
}

/// Method and key of one signer of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedBy {
    /// Kind of signature: `cosign`, `sigstore-bundle` or `openpgp`.
    pub method: String,
    /// Fingerprint of the key: the sha256 of its `SubjectPublicKeyInfo`, or an OpenPGP fingerprint.
    pub key: String,
}

/// Reads a list, and refuses one that is too long.
pub(crate) fn read_short_list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let list = Vec::deserialize(deserializer)?;
    if list.len() > LIST_READ_MAX {
        let expected = format!("a list of at most {LIST_READ_MAX} entries");
        return Err(D::Error::invalid_length(list.len(), &expected.as_str()));
    }
    Ok(list)
}
