use olm::UnreadableMeta;
use work::OverBudget;

use crate::ReadError;

/// Largest number of names in a message. A channel may have thousands.
const NAMES_MAX: usize = 5;

/// Maximum number of characters of foreign text in a message. A name or range may have megabytes.
const TEXT_CHARS_MAX: usize = 300;

/// Maximum size of the documents without a package if several inputs have some, in bytes: they are sorted in memory.
pub(crate) const GLOBAL_BYTES_MAX: usize = 32 << 20;

/// Maximum size of the lines that are added to one package and of those that they change, in bytes: they are merged in memory.
pub(crate) const ADDED_BYTES_MAX: usize = 32 << 20;

/// Error of a composition.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// Nothing is composed.
    #[error("a composition needs `inputs` or `add`")]
    NoInput,
    /// An input has no place, or two.
    #[error("an input has either `catalog` (published by this mirror) or `source` (pulled)")]
    Origin,
    /// A selection cannot be applied to its input.
    #[error("input {0}")]
    Select(String, #[source] Box<SelectError>),
    /// A selection names a package that its input does not have.
    #[error("input {0} has no package {1}")]
    NoPackage(String, String),
    /// Two inputs have the same package.
    #[error("package {0} is in {1} and in {2}; select it from one of them, or set conflicts: first")]
    Conflict(String, String, String),
    /// An addition has other content for what exists.
    #[error("add: package {0} has {1} already, with other content; set replace: true to replace it")]
    Exists(String, String),
    /// The lines that are added to a package take too much memory.
    #[error(
        "add: the lines that are added to package {0} exceed {ADDED_BYTES_MAX} bytes, with those that they change; make it an input"
    )]
    Added(String),
    /// A removal names what is not there.
    #[error("remove: the composition has no {1} of package {0}")]
    NothingToRemove(String, String),
    /// The package is not valid after `add` and `remove`.
    #[error("add and remove leave an invalid package")]
    Edit(#[source] Box<SelectError>),
    /// The lines of a package cannot be read.
    #[error("input {input}: cannot read package {package:?}")]
    Read {
        /// Name of the input.
        input: String,
        /// Name of the package.
        package: String,
        /// Error of the storage.
        source: ReadError,
    },
    /// The receiver of the packages failed.
    #[error("cannot keep a package")]
    Sink(#[source] ReadError),
    /// The names, versions and requirements of bundles take too much memory.
    #[error(
        "package {}: names, versions and requirements exceed {limit} bytes; select fewer packages, or set dependencies: ignore",
        shown(.package)
    )]
    TooLarge {
        /// Name of the package at which the limit was exceeded.
        package: String,
        /// Limit in bytes.
        limit: usize,
    },
    /// Several inputs have documents without a package, too large to sort.
    #[error("the documents without a package of all inputs exceed {GLOBAL_BYTES_MAX} bytes")]
    Global,
    /// The work takes too many steps, or is not wanted any more.
    #[error("the work on {place} {over}")]
    Work {
        /// Package, or the composition as a whole.
        place: String,
        /// Bound of the work.
        over: OverBudget,
    },
}

impl From<OverBudget> for ComposeError {
    fn from(over: OverBudget) -> Self {
        let place = "the composition".to_owned();
        Self::Work { place, over }
    }
}

/// Error of a selection, or of the package that it is applied to. The first field is the package, or package and channel.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// Fields of the selection exclude each other.
    #[error("{0}: {1}")]
    Conflict(String, &'static str),
    /// The selection names a channel that the package does not have, beside those that it has.
    #[error("package {0} has no channel {1}; it has {has}", has = listed(.2))]
    NoChannel(String, String, Vec<String>),
    /// A bundle that the selection names, or that a channel needs, is in no channel or missing.
    #[error("package {0} has no bundle {1} in a channel")]
    NoBundle(String, String),
    /// A part of the selection takes nothing from a channel that it names, or from the whole package.
    #[error("{0}: {1} takes no bundle; remove it from the selection, or choose other versions")]
    Nothing(String, String),
    /// The selected part of a channel is not a valid channel.
    #[error("{place}: with {selection} the channel {fault}; {advice}")]
    Broken {
        /// Package and channel.
        place: String,
        /// Part of the selection that breaks the channel.
        selection: String,
        /// Rule that the rest of the channel violates.
        fault: ChannelFault,
        /// Change of the selection that helps.
        advice: String,
    },
    /// The default channel is not selected, or there is none; the channels of the result.
    #[error("package {0}: {missing}; set defaultChannel to one of {left}", missing = missing_default(.1.as_deref()), left = listed(.2))]
    DefaultChannel(String, Option<String>, Vec<String>),
    /// A document does not fit its schema, so its part in the graph is unknown.
    #[error("package {0}: the {schema} {name:?} cannot be read: {reason}", schema = .1.schema, name = .1.name, reason = .1.reason)]
    Unreadable(String, UnreadableMeta),
    /// A document cannot be written again without the parts that are gone.
    #[error("package {0}: a document cannot be rewritten")]
    Rewrite(String, #[source] RewriteError),
}

/// Rule of OLM that a channel violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelFault {
    /// Each entry is replaced or skipped by another one.
    #[error("has no head: its entries replace or skip each other in a cycle")]
    NoHead,
    /// No entry replaces or skips any of these.
    #[error("has several heads: {}", listed(.0))]
    Heads(Vec<String>),
    /// The chain of `replaces` comes back to this entry.
    #[error("has a cycle of replaces through {0}")]
    Cycle(String),
    /// The head reaches none of these.
    #[error("has entries that its head does not reach: {}", listed(.0))]
    Stranded(Vec<String>),
}

/// Error of a document that is written again: it has not the form of its schema, or no canonical form.
pub(crate) type RewriteError = ReadError;

/// Escapes and shortens text of a catalog for a message.
pub(crate) fn shown(text: &str) -> String {
    model::text::line(text, TEXT_CHARS_MAX)
}

/// Returns the first names of a list, and the number of the others.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    let first = names.iter().take(NAMES_MAX).map(|name| shown(name.as_ref()));
    let first = first.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        _ if names.is_empty() => "none".to_owned(),
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn missing_default(default: Option<&str>) -> String {
    match default {
        Some(channel) => format!("the default channel {channel} is not selected"),
        None => "it has no default channel".to_owned(),
    }
}
