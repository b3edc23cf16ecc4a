use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Current, Document, Previous, Sha256};

/// `notified.json`: the last publication that each receiver of change events has acknowledged. An
/// event is still to be sent wherever it differs from `current.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// Last publication by the configured name of the receiver; `None` for a receiver that was
    /// added before the first one.
    pub receivers: BTreeMap<String, Option<PublicationId>>,
}

/// Identifies a publication of one catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublicationId {
    /// Serial of the publication, from 1.
    pub serial: u64,
    /// Content hash: the serials of a catalog that was removed and published anew start again at 1.
    pub content_hash: Sha256,
}

impl Document for Notified {
    const NAME: &'static str = "notified.json";
}

impl From<&Current> for PublicationId {
    fn from(current: &Current) -> Self {
        Self {
            serial: current.serial,
            content_hash: current.content_hash,
        }
    }
}

impl From<&Previous> for PublicationId {
    fn from(previous: &Previous) -> Self {
        Self {
            serial: previous.serial,
            content_hash: previous.content_hash,
        }
    }
}
