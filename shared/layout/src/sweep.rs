use serde::{Deserialize, Serialize};

use crate::{Document, Sha256};

/// `sweep.json`: whether objects that nothing names are being removed. Whoever publishes looks at it before the commit;
/// without it nothing was ever removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Grows by one whenever removing begins.
    pub serial: u64,
    /// Whether it goes on. One that died leaves it so.
    pub active: bool,
}

/// `intents/<content-hash>.json`: this content of the catalog is about to be published, or was until now, so a sweep must
/// spare what its Snapshot names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The content.
    pub content_hash: Sha256,
    /// Whether nobody is about to publish it, and only readers may still hold it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_readers: bool,
}

impl Document for Sweep {
    const KIND: &'static str = "sweep.json";
}

impl Document for Intent {
    const KIND: &'static str = "intent";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back() {
        let sweep = Sweep {
            serial: 7,
            active: true,
        };
        assert_eq!(Sweep::from_bytes(&sweep.to_bytes()).unwrap(), sweep);
        let intent = Intent {
            content_hash: Sha256::of(b"lines"),
            for_readers: false,
        };
        assert_eq!(Intent::from_bytes(&intent.to_bytes()).unwrap(), intent);
    }
}
