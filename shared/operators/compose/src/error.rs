use std::{collections::BTreeMap, error::Error};

use model::text;
use work::OverBudget;

/// Largest number of names in a message. A channel may have thousands.
const NAMES_MAX: usize = 5;

/// Maximum number of characters of foreign text in a message. A name or range may have megabytes.
pub(crate) const TEXT_CHARS: usize = 300;

/// Place of work that is not about one package.
pub(crate) const WHOLE: &str = "the composition";

/// Error of the storage that holds a catalog.
pub type ReadError = Box<dyn Error + Send + Sync>;

/// Error of a composition.
#[derive(Debug, thiserror::Error)]
pub enum ComposeError {
    /// The composition cannot be read, contradicts itself or does not fit its inputs, or the result
    /// would not be valid. Says what to change.
    #[error("{0}")]
    Refused(String),
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
        let place = WHOLE.to_owned();
        Self::Work { place, over }
    }
}

/// Returns the problem of a bundle that is selected or added, and is missing or in no channel.
pub(crate) fn no_bundle(package: &str, bundle: &str) -> String {
    format!("package {package} has no bundle {bundle} in a channel")
}

/// Returns the problem of a package whose default channel is not among those that are left.
pub(crate) fn no_default_channel<V>(
    package: &str,
    default: Option<&str>,
    left: &BTreeMap<&str, V>,
) -> String {
    let missing = match default {
        Some(channel) => format!("the default channel {channel} is not selected"),
        None => "it has no default channel".to_owned(),
    };
    let left = listed(&left.keys().collect::<Vec<_>>());
    format!("package {package}: {missing}; set defaultChannel to one of {left}")
}

/// Returns the error of what is known of bundles if it exceeds a limit of memory.
pub(crate) fn too_large(package: &str, limit: usize) -> ComposeError {
    ComposeError::Refused(format!(
        "package {}: names, versions and requirements exceed {limit} bytes; select fewer packages, or set dependencies: ignore",
        text::line(package, TEXT_CHARS)
    ))
}

/// Returns the error of a package that `add` and `remove` leave invalid.
pub(crate) fn edit_error(problem: &str) -> ComposeError {
    ComposeError::Refused(format!(
        "add and remove leave an invalid package: {problem}"
    ))
}

/// Returns the first names of a list, and the number of the others.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut first = Vec::new();
    for name in names.iter().take(NAMES_MAX) {
        first.push(text::line(name.as_ref(), TEXT_CHARS));
    }
    let first = first.join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
