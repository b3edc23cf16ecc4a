//! The rules by which `opm validate` and `opm serve` of operator-registry v1.73.0 refuse a catalog.
//!
//! opm stops at the first error in places. All errors are found here, and the verdict is the same.

mod bundle;
mod channel;
mod findings;
mod image;
mod package;
mod rule;
mod schemas;
mod shape;
mod value;

use std::{collections::BTreeMap, mem};

use model::text::{self, LineBuffer};
use serde::Serialize;
use work::Budget;

pub use findings::{FINDINGS, FINDINGS_MAX, ValidationSummary};
pub use package::is_cache_key;
pub use rule::{Rule, Severity};
pub use schemas::{CSV_METADATA, ICON, RELATED_IMAGES};
pub use shape::{Shape, ShapeField, decode_base64, field_position};

use self::package::{BundleFacts, StoredLine};
use self::shape::Decoded;
use self::value::Value;

/// Maximum number of characters of a foreign text in a violation. A name may have megabytes.
const TEXT_CHARS: usize = 300;

/// Maximum number of different unknown schemas that are counted by name; all others count as one.
const SCHEMAS_MAX: usize = 100;

/// Violation of a rule. Control characters in its texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RuleViolation {
    /// Rule that the document breaks.
    pub rule: Rule,
    /// Name of the Package; empty for the global group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// Name of the channel, if the violation is about one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the bundle or of the entry, if the violation is about one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// Value that breaks the rule, and the reason; empty if the names say all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Line in the Shard, from 1; 0 for a whole file.
    pub line: usize,
}

impl RuleViolation {
    /// Returns the meaning of the rule with the detail.
    pub fn text(&self) -> String {
        match self.detail.as_str() {
            "" => self.rule.meaning().to_owned(),
            detail => format!("{}: {detail}", self.rule.meaning()),
        }
    }
}

/// Numbers of the documents that were checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchemaCounts {
    /// Documents of the schemas that OLM defines.
    pub known: u64,
    /// Documents of each other schema, also of newer versions of the known ones. They pass.
    pub other: BTreeMap<String, u64>,
}

impl SchemaCounts {
    /// Adds the counts of another Shard.
    pub fn merge(&mut self, other: Self) {
        self.known += other.known;
        for (schema, count) in other.other {
            self.add_other(schema, count);
        }
    }

    fn add_other(&mut self, schema: String, count: u64) {
        let is_full = self.other.len() >= SCHEMAS_MAX && !self.other.contains_key(&schema);
        let schema = if is_full { "...".to_owned() } else { schema };
        *self.other.entry(schema).or_default() += count;
    }
}

/// Checks the lines of one Shard, which may come in chunks of any size. Every rule of OLM is about
/// one Package, so a catalog is valid if all its Shards are.
///
/// It holds the longest line and the lines of channels and deprecations. Of bundles, which are
/// nearly all bytes, it keeps names and versions.
///
/// ```
/// use olm::{Rule, ShardValidator};
///
/// let mut rules = Vec::new();
/// let mut sink = |violation: olm::RuleViolation| rules.push(violation.rule);
/// let mut validator = ShardValidator::new("db", |_| true);
/// validator.push(br#"{"defaultChannel":"stable","name":"d"#, &mut sink);
/// validator.push(br#"b","schema":"olm.package"}"#, &mut sink);
/// validator.finish(&mut sink);
/// assert_eq!(rules, [Rule::PackageNoChannel, Rule::DefaultChannelUnknown]);
/// ```
pub struct ShardValidator {
    name: String,
    is_yaml: fn(&[u8]) -> bool,
    /// Each `olm.package` of this name: its line and its default channel.
    definitions: Vec<(usize, String)>,
    bundles: Vec<BundleFacts>,
    /// The lines of each `olm.channel` and `olm.deprecations`. They are decoded when all bundles
    /// are known.
    channels: Vec<StoredLine>,
    deprecations: Vec<StoredLine>,
    /// True if a document with phases of support was there.
    has_lifecycle: bool,
    counts: SchemaCounts,
    /// Number of complete lines so far, all of which were checked.
    lines: usize,
    buffer: LineBuffer,
    /// Budget of the work after the last line, which ends without a result if it is stopped.
    budget: Budget,
}

impl ShardValidator {
    /// Creates a validator for the Shard `name`; the global group has an empty name. `is_yaml`
    /// returns true if the bytes are YAML, in which the objects inside a bundle may be written.
    pub fn new(name: &str, is_yaml: fn(&[u8]) -> bool) -> Self {
        Self {
            name: name.to_owned(),
            is_yaml,
            definitions: Vec::new(),
            bundles: Vec::new(),
            channels: Vec::new(),
            deprecations: Vec::new(),
            has_lifecycle: false,
            counts: SchemaCounts::default(),
            lines: 0,
            buffer: LineBuffer::default(),
            budget: Budget::default(),
        }
    }

    /// Adds the next bytes, and passes what their lines violate by themselves to `sink`.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(RuleViolation)) {
        let package = &self.name.clone();
        let mut buffer = mem::take(&mut self.buffer);
        buffer.push(chunk, |line| self.line(line, &mut Report { package, sink }));
        self.buffer = buffer;
    }

    /// Passes what the lines violate together to `sink`. A last line without a newline counts too.
    pub fn finish(&mut self, sink: &mut dyn FnMut(RuleViolation)) -> SchemaCounts {
        let package = &self.name.clone();
        let mut report = Report { package, sink };
        mem::take(&mut self.buffer).finish(|line| self.line(line, &mut report));
        self.check_all(&mut report).ok();
        mem::take(&mut self.counts)
    }
}

/// Place of a violation: the line and, if they apply, the names of the channel and the bundle.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    line: usize,
    channel: &'a str,
    bundle: &'a str,
}

/// Receiver of the violations about one Package.
struct Report<'s> {
    package: &'s str,
    sink: &'s mut dyn FnMut(RuleViolation),
}

impl<'a> Place<'a> {
    const fn new(line: usize, channel: &'a str, bundle: &'a str) -> Self {
        Self {
            line,
            channel,
            bundle,
        }
    }
}

impl Report<'_> {
    /// Adds a violation whose names say all, unless the rule holds.
    fn require(&mut self, holds: bool, rule: Rule, place: Place<'_>) {
        if !holds {
            self.add(rule, place, "");
        }
    }

    fn add(&mut self, rule: Rule, place: Place<'_>, detail: &str) {
        (self.sink)(RuleViolation {
            rule,
            package: line(self.package),
            channel: line(place.channel),
            bundle: line(place.bundle),
            detail: line(detail),
            line: place.line,
        });
    }

    /// Returns the value of a decoded line, and reports the rules that it breaks.
    fn decoded<'a>(&mut self, (value, errors): Decoded<'a>, place: Place<'_>) -> Value<'a> {
        for (rule, detail) in errors {
            self.add(rule, place, &detail);
        }
        value
    }
}

/// Returns a text on one line, cut to the length of one in a violation.
fn line(text: &str) -> String {
    text::line(text, TEXT_CHARS)
}

/// Returns the text in quotes, so that an empty one is seen, without what no violation shows.
fn quoted(text: &str) -> String {
    let end = text.char_indices().nth(TEXT_CHARS);
    format!("{:?}", &text[..end.map_or(text.len(), |(end, _)| end)])
}
