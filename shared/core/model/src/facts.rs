use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{Document, Kind, StoredDocument};

/// Facts of one kind about the Packages of a Snapshot, such as the texts for search: a function of
/// their lines and of the version of the recorder.
///
/// As JSON text, which is the default, a part takes no more memory than its bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts<P = Box<RawValue>> {
    /// Version of the recorder. Parts of another version are not used for another Snapshot.
    pub version: u32,
    /// Parts by the name of the Package, which is empty for the global group. One about which there
    /// is nothing to say is absent.
    pub packages: BTreeMap<String, P>,
    /// Parts that lack their long texts, because the document would be too large. They are not used
    /// for another Snapshot.
    #[serde(default = "BTreeMap::new", skip_serializing_if = "BTreeMap::is_empty")]
    pub shortened: BTreeMap<String, P>,
}

/// Findings of the validation of one Package, or of the global group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageFindings {
    /// Numbers of all its findings, also of those that are not listed.
    #[serde(flatten)]
    pub counts: ValidationCounts,
    /// Number of documents of each unknown schema.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schemas: BTreeMap<String, u64>,
    /// Its first findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ValidationFinding>,
}

/// Numbers of findings, and of documents that the rules do not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationCounts {
    /// Number of findings for which OLM refuses the catalog.
    pub errors: u64,
    /// Number of other findings.
    pub warnings: u64,
    /// Number of documents of unknown schemas, newer versions of the known ones included. They
    /// pass.
    pub unknown_schemas: u64,
}

/// Violation of one rule. Control characters in its texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationFinding {
    /// Weight of the violation.
    pub severity: FindingSeverity,
    /// Stable code of the rule, such as `channel-cycle`.
    pub rule: String,
    /// Name of the channel, if the finding is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name of the bundle or of the entry, if the finding is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// The rule in words, and the value that violates it.
    pub message: String,
    /// Line in the Shard, from 1.
    pub line: u64,
}

/// Weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingSeverity {
    /// `opm validate` or `opm serve` refuses the catalog.
    Error,
    /// A known weakness of real catalogs that neither refuses.
    Warning,
}

/// Texts of one Package, from the head of its default channel.
#[serde_with::apply(
    String => #[serde(skip_serializing_if = "String::is_empty")],
    Vec => #[serde(skip_serializing_if = "Vec::is_empty")],
)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchPackage {
    /// Name of the Package, which is the key of the part in the document.
    #[serde(skip)]
    pub name: String,
    /// Name for people; empty if it has none.
    pub display_name: String,
    /// One sentence about the Package; empty if it has none.
    pub summary: String,
    /// Name of the default channel, from whose head the texts are.
    pub channel: String,
    /// Version of the head of the default channel.
    pub version: String,
    /// Company or community that provides it.
    pub provider: String,
    /// Capability level, such as `Seamless Upgrades`.
    pub capability: String,
    /// Categories, such as `Database`.
    pub categories: Vec<String>,
    /// CPUs that it says it supports, in Go's words; `amd64` if it says nothing.
    pub arches: Vec<String>,
    /// Keywords by which its author wants it to be found, such as `backup`.
    pub keywords: Vec<String>,
    /// Kinds of the APIs that it provides.
    pub kinds: Vec<String>,
    /// Different words of its description, folded, with spaces between them.
    pub words: String,
    /// Ending of the file of its icon, such as `svg`; empty if it has no icon that is shown.
    pub icon: String,
    /// True if the Package itself is deprecated.
    #[serde(skip_serializing_if = "is_false")]
    pub deprecated: bool,
    /// Phases of support of the version, in the order of their document; empty without data.
    pub support: Vec<SupportPhase>,
}

/// Phase of the support of a version, with its days as its document writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupportPhase {
    /// Name of the phase, such as `Full support`.
    pub name: String,
    /// First day, such as `2026-11-29`.
    pub start: String,
    /// Last day, which belongs to the phase.
    pub end: String,
}

/// Days on which a mirror first saw the bundles of one Package, such as `2026-11-29`.
///
/// Unlike other facts they are no function of the lines: each mirror has its own days, and a copy
/// has those of its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SeenPackage {
    /// Day on which the mirror began to record days: what it saw on that day may be older. Only in
    /// the part without a name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// Days by the name of the bundle, also of bundles that are gone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, String>,
}

impl SeenPackage {
    /// Name of the kind in a Snapshot.
    pub const KIND: &'static str = "seen";
    /// Version of the document.
    pub const VERSION: u32 = 1;
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl<P> Facts<P> {
    /// Creates a document without parts.
    pub const fn new(version: u32) -> Self {
        Self {
            version,
            packages: BTreeMap::new(),
            shortened: BTreeMap::new(),
        }
    }

    /// Returns the part of a Package, whole or not.
    pub fn part(&self, package: &str) -> Option<&P> {
        let whole = self.packages.get(package);
        whole.or_else(|| self.shortened.get(package))
    }

    /// Returns all parts with the names of their Packages, those that are whole first.
    pub fn parts(&self) -> impl Iterator<Item = (&String, &P)> {
        self.packages.iter().chain(&self.shortened)
    }
}

impl<P: Serialize + DeserializeOwned> Document for Facts<P> {
    const NAME: &'static str = "facts";
    const INDENTED: bool = false;
}

impl<P: Serialize + DeserializeOwned> StoredDocument for Facts<P> {
    const KIND: Kind = Kind::Facts;
    // 64 MiB: 16 MiB of parts, and the names of as many Packages as a Snapshot may have.
    const MAX_BYTES: u64 = 64 << 20;
}
