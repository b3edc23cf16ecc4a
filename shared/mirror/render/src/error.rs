use std::{collections::BTreeSet, io, path::PathBuf};

use model::Sha256;
use oci::LimitExceeded;
use work::OverBudget;

/// Maximum number of characters of foreign text in an error: a catalog may hold names of megabytes.
const FOREIGN_CHARS_MAX: usize = 300;

/// Escapes and shortens text of a catalog for an error.
pub(crate) fn shown(text: &str) -> String {
    model::text::line(text, FOREIGN_CHARS_MAX)
}

/// A catalog that cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Files that are not valid FBC.
    #[error("{}", problem_list(problems))]
    Invalid {
        /// Problems in the order of the file walk; never empty.
        problems: Vec<FileProblem>,
    },
    /// The catalog exceeds a limit. Its place is a file, relative to the FBC root, or a Package.
    #[error(transparent)]
    Limit(LimitExceeded),
    /// The work of the budget was stopped.
    #[error("was not rendered to its end: the result is not wanted any more")]
    Stopped,
    /// A stored Shard or `all.json.gz`, by the sha256 in its key, that does not have the bytes
    /// which its name promises.
    #[error("the stored object {0} is damaged")]
    Damaged(Sha256),
    /// A stored Shard or `all.json.gz` cannot be read.
    #[error("cannot read the stored object {sha256}")]
    Unreadable {
        /// The sha256 in its key.
        sha256: Sha256,
        /// Error of the store.
        source: io::Error,
    },
    /// An object was made whose bytes do not decode to the lines.
    #[error(
        "{part} was made, but does not decode to the lines of the catalog: nothing was published"
    )]
    NotDecoded {
        /// Name of the object, such as `all.json.gz`.
        part: &'static str,
    },
    /// The temporary file for compressed Shards fails.
    #[error("cannot use temporary storage")]
    Scratch(#[source] io::Error),
    /// A file of an OCI layout cannot be read or written.
    #[error("cannot write to {}", path.display())]
    File {
        /// Path of the file, or of its folder.
        path: PathBuf,
        /// Error of the file system, or of `index.json`.
        source: io::Error,
    },
    /// A part of the publication cannot be written.
    #[error("cannot write {part}")]
    Sink {
        /// Name of the part, such as `all.json.gz`.
        part: &'static str,
        /// Error of the sink.
        source: io::Error,
    },
}

/// One problem of one file.
#[derive(Debug, Clone)]
pub struct FileProblem {
    /// Path of the file, relative to the FBC root.
    pub path: String,
    /// Index of the document and its error.
    pub reason: String,
    /// Name of the limit that the document exceeds, if that is the error.
    pub limit: Option<&'static str>,
}

impl RenderError {
    /// Returns the error of one file.
    pub(crate) fn of_file(path: String, reason: String) -> Self {
        let limit = None;
        let problems = vec![FileProblem {
            path,
            reason,
            limit,
        }];
        Self::Invalid { problems }
    }

    /// Returns the error of work at `place` that ends before its result.
    pub(crate) fn over_budget(error: OverBudget, place: &str) -> Self {
        match error {
            OverBudget::Stopped => Self::Stopped,
            OverBudget::Steps(limit) => Self::limit("steps", limit, place),
        }
    }

    /// Returns the error of a limit that is exceeded at `place`.
    pub(crate) fn limit(name: &'static str, limit: u64, place: &str) -> Self {
        let place = shown(place);
        Self::Limit(LimitExceeded { name, limit, place })
    }

    /// True if a stored object cannot be used, which was made from the source and can be made
    /// again.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Unreadable { .. })
    }

    /// Returns the names of the limits that the catalog exceeds, each once.
    pub fn limits(&self) -> BTreeSet<&'static str> {
        match self {
            Self::Limit(exceeded) => BTreeSet::from([exceeded.name]),
            Self::Invalid { problems } => problems
                .iter()
                .filter_map(|problem| problem.limit)
                .collect(),
            _ => BTreeSet::new(),
        }
    }
}

fn problem_list(problems: &[FileProblem]) -> String {
    const SHOWN_MAX: usize = 5;
    let mut list = Vec::new();
    for problem in problems.iter().take(SHOWN_MAX) {
        list.push(format!("{}: {}", problem.path, problem.reason));
    }
    if problems.len() > SHOWN_MAX {
        list.push(format!("and {} more", problems.len() - SHOWN_MAX));
    }
    list.join("; ")
}
