use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Current, Document, Previous, Sha256};

/// `notified.json`: up to which publication each receiver of change notifications has been told. Together with
/// `current.json` it is the outbox: where the two differ, an event is still to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// By the configured name of the receiver; none for one that came before anything was published.
    pub receivers: BTreeMap<String, Option<Mark>>,
}

/// A publication, in a few bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// Its serial.
    pub serial: u64,
    /// Its content hash: a catalog that was removed and published anew starts again with the same serials.
    pub content_hash: Sha256,
}

impl Document for Notified {
    const KIND: &'static str = "notified.json";
}

impl From<&Current> for Mark {
    fn from(current: &Current) -> Self {
        Self {
            serial: current.serial,
            content_hash: current.content_hash,
        }
    }
}

impl From<&Previous> for Mark {
    fn from(previous: &Previous) -> Self {
        Self {
            serial: previous.serial,
            content_hash: previous.content_hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_with_and_without_a_publication() {
        let mark = Mark {
            serial: 7,
            content_hash: Sha256::of(b"lines"),
        };
        let notified = Notified {
            receivers: [("new".to_owned(), None), ("told".to_owned(), Some(mark))].into(),
        };
        let bytes = notified.to_bytes();
        assert_eq!(Notified::from_bytes(&bytes).unwrap(), notified);
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains(r#""new": null"#) && text.contains(r#""serial": 7"#),
            "{text}"
        );
    }
}
