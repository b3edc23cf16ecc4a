//! Facts about packages that are recorded at publication: one recorder for each kind, one document
//! for all of its parts.
//!
//! ```text
//! lines of a Shard -> Recorder of each FactKind -> part in JSON -> FactsBuilder -> Facts   at publication
//! ```

use model::{Facts, IndexedMeta};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};
use work::Budget;

use crate::{search, validate};

/// Kind of facts: its name in the Snapshot, and the functions that make its parts.
#[derive(Debug, Clone, Copy)]
pub struct FactKind {
    /// Name of the kind, such as `search`.
    pub name: &'static str,
    /// Version of the recorder. It grows when the same lines would give other facts.
    pub version: u32,
    /// Starts the recorder of one Shard.
    pub recorder: for<'s> fn(RecordedShard<'s>) -> Box<dyn Recorder + 's>,
    /// Maximum size of all parts of one document, in bytes: several times those of the largest real
    /// catalog. Parts beyond it lack their long texts.
    pub bytes_max: usize,
    /// Returns true if a part that another program recorded has the form of this kind.
    pub is_part: fn(&RawValue) -> bool,
    /// Returns a part without its long texts.
    pub shorten: fn(&RawValue) -> Box<RawValue>,
}

/// Kinds of facts that this program records, in the order of their names.
pub const FACT_KINDS: [FactKind; 2] = [validate::FINDINGS, search::SEARCH];

/// Shard that is recorded.
#[derive(Debug, Clone, Copy)]
pub struct RecordedShard<'s> {
    /// Name of the Package; empty for the global group.
    pub name: &'s str,
    /// Positions of its lines, which lie end to end.
    pub metas: &'s [IndexedMeta],
    /// Returns true if the bytes are YAML, in which the objects inside a bundle may be written.
    pub is_yaml: fn(&[u8]) -> bool,
    /// Budget of the work on the Shard. A recorder that it stops has no result that counts.
    pub budget: &'s Budget,
}

/// Recorder of one kind of facts about one Shard.
pub trait Recorder {
    /// Adds the next bytes, which may start or end within a line.
    fn push(&mut self, lines: &[u8]);

    /// Returns the part in JSON after the last bytes; `null` if there is nothing to say about the
    /// Package. Returns `None` if it needs the lines once more, from their start.
    fn finish(&mut self) -> Option<Box<RawValue>>;
}

/// Builder of the document of one kind, whose parts come in the order of the Snapshot.
#[derive(Debug)]
pub struct FactsBuilder {
    kind: FactKind,
    size: usize,
    /// Document with the parts so far.
    pub facts: Facts,
}

impl FactsBuilder {
    /// Starts a document without parts.
    pub const fn new(kind: FactKind) -> Self {
        Self {
            kind,
            size: 0,
            facts: Facts::new(kind.version),
        }
    }

    /// Adds the part of the next Shard.
    pub fn push(&mut self, name: &str, part: Box<RawValue>) {
        if part.get() == "null" {
            return;
        }
        let size = self.size + part.get().len();
        if size > self.kind.bytes_max {
            let part = (self.kind.shorten)(&part);
            self.facts.shortened.insert(name.to_owned(), part);
        } else {
            self.size = size;
            self.facts.packages.insert(name.to_owned(), part);
        }
    }
}

/// Returns true if the JSON text has the form of the type.
pub(crate) fn is_json<T: DeserializeOwned>(part: &RawValue) -> bool {
    serde_json::from_str::<T>(part.get()).is_ok()
}

/// Returns a value of this program as JSON text.
pub(crate) fn json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("facts hold only numbers, texts and maps with text keys")
}

#[cfg(test)]
mod tests {
    use model::{PackageFindings, ValidationCounts};

    use super::*;
    use crate::{FINDINGS, SEARCH, ValidationSummary};

    /// Returns a part of about `size` bytes with one error.
    fn part(size: usize) -> Box<RawValue> {
        json(&PackageFindings {
            counts: ValidationCounts {
                errors: 1,
                ..ValidationCounts::default()
            },
            schemas: [("a".repeat(size), 1)].into(),
            ..PackageFindings::default()
        })
    }

    #[test]
    fn builder_shortens_parts_beyond_its_size_and_keeps_their_counts() {
        let mut builder = FactsBuilder::new(FINDINGS);
        for name in ["a", "b", "c"] {
            builder.push(name, part(FINDINGS.bytes_max / 2 - 100));
        }
        builder.push("d", part(10));
        builder.push("nothing", RawValue::NULL.to_owned());
        let facts = builder.facts;
        assert!(facts.packages.keys().eq(["a", "b", "d"]) && facts.shortened.keys().eq(["c"]));
        let counts = r#"{"errors":1,"warnings":0,"unknownSchemas":0}"#;
        assert_eq!(facts.shortened["c"].get(), counts);
        assert_eq!(ValidationSummary::of(&facts).unwrap().counts.errors, 4);
    }

    #[test]
    fn part_of_another_form_is_not_one_of_the_kind() {
        let other = json(&[1]);
        assert!(
            FACT_KINDS.iter().all(|kind| !(kind.is_part)(&other)),
            "{other}"
        );
        assert!((FINDINGS.is_part)(&part(1)) && (SEARCH.is_part)(&(SEARCH.shorten)(&other)));
    }
}
