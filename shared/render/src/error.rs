use std::{fmt, io};

use layout::Sha256;

use crate::Limit;

/// The most that an error repeats of what a catalog holds, which may be megabytes.
const MOST_CHARS: usize = 300;

/// What a catalog says, as errors repeat it.
pub(crate) fn shown(text: &str) -> String {
    text::line(text, MOST_CHARS)
}

/// Why a catalog cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Files that are no valid FBC.
    #[error("{}", Invalid(problems))]
    Invalid {
        /// What is wrong, in the order of the file walk; never empty.
        problems: Vec<Problem>,
    },
    /// More of something than allowed.
    #[error("{0}")]
    Limit(Limit),
    /// A published Shard does not hash to its name any more.
    #[error("the published shard {sha256} is damaged")]
    Damaged {
        /// The Shard.
        sha256: Sha256,
    },
    /// A published Shard cannot be read back.
    #[error("cannot read the published shard {sha256}")]
    Published {
        /// The Shard.
        sha256: Sha256,
        /// Why.
        source: io::Error,
    },
    /// The temporary file for compressed Shards fails.
    #[error("cannot use temporary storage")]
    Scratch(#[source] io::Error),
    /// A form of the catalog cannot be written.
    #[error("cannot write {form}")]
    Sink {
        /// Which.
        form: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// What is wrong with one file.
#[derive(Debug)]
pub struct Problem {
    /// The file, relative to the FBC root.
    pub path: String,
    /// What is wrong, and in which document.
    pub reason: String,
}

struct Invalid<'a>(&'a [Problem]);

impl fmt::Display for Invalid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        let (shown, rest) = self.0.split_at(self.0.len().min(SHOWN));
        for (at, problem) in shown.iter().enumerate() {
            let comma = if at == 0 { "" } else { "; " };
            write!(f, "{comma}{}: {}", problem.path, problem.reason)?;
        }
        if !rest.is_empty() {
            write!(f, "; and {} more", rest.len())?;
        }
        Ok(())
    }
}
