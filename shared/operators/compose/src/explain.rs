use std::collections::BTreeSet;

use serde::Serialize;

/// Maximum number of notices that are kept; the others are counted. A catalog may cause one for
/// each of its documents.
const NOTICES_MAX: usize = 1000;

/// Explanation of a composition.
#[derive(Debug, Default)]
pub struct Explanation {
    /// Reason for each bundle, and for each package that was not read; `None` if they are not
    /// wanted.
    pub decisions: Option<Vec<Decision>>,
    /// First remarks that do not stop the composition, for people.
    pub notices: Vec<String>,
    /// Number of the other remarks.
    pub more_notices: usize,
}

/// Reason for which a bundle is in a composition, or is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Name of the package.
    pub package: String,
    /// Name of the bundle; empty if the whole package is meant.
    pub bundle: String,
    /// Version of the bundle, as the catalog writes it.
    pub version: Option<String>,
    /// True if the bundle is in.
    pub kept: bool,
    /// Reason, for people.
    pub reason: String,
}

/// Decisions for people: packages that are out as a whole for one reason are one row.
#[derive(Debug)]
pub struct FoldedDecisions {
    /// Decisions for bundles, then those for whole packages.
    pub rows: Vec<Decision>,
    /// Numbers of packages and bundles that are in and out, in words.
    pub sum: String,
}

impl FoldedDecisions {
    /// Folds all decisions of a composition.
    pub fn of(mut decisions: Vec<Decision>) -> Self {
        let bundles = |kept| {
            let of_kind =
                |decision: &&Decision| decision.kept == kept && !decision.bundle.is_empty();
            decisions.iter().filter(of_kind).count()
        };
        let (bundles_in, bundles_out) = (bundles(true), bundles(false));
        let kept = decisions.iter().filter(|decision| decision.kept);
        let packages_in = kept
            .map(|decision| &decision.package)
            .collect::<BTreeSet<_>>()
            .len();
        let is_whole_and_out =
            |decision: &mut Decision| !decision.kept && decision.bundle.is_empty();
        let mut whole: Vec<Decision> = decisions.extract_if(.., is_whole_and_out).collect();
        whole.sort_by(|one, other| one.reason.cmp(&other.reason));
        let by_reason = whole.chunk_by(|one, other| one.reason == other.reason);
        let folded = by_reason.filter_map(|same| {
            let mut one = same.last()?.clone();
            if same.len() > 1 {
                one.package = format!("({} packages)", same.len());
            }
            Some(one)
        });
        decisions.extend(folded);
        let (rows, packages_out) = (decisions, whole.len());
        let sum = format!(
            "in: packages {packages_in}, bundles {bundles_in}; out: bundles {bundles_out}, whole packages {packages_out}"
        );
        Self { rows, sum }
    }
}

impl Explanation {
    /// Creates an explanation that keeps decisions too.
    #[must_use]
    pub fn with_decisions() -> Self {
        Self {
            decisions: Some(Vec::new()),
            ..Self::default()
        }
    }

    pub(crate) fn notice(&mut self, notice: String) {
        if self.notices.len() < NOTICES_MAX {
            self.notices.push(notice);
        } else {
            self.more_notices += 1;
        }
    }

    /// Adds decisions, if they are wanted.
    pub(crate) fn decide(&mut self, decisions: impl IntoIterator<Item = Decision>) {
        if let Some(all) = &mut self.decisions {
            all.extend(decisions);
        }
    }
}

impl Decision {
    /// Returns the reason for a whole package.
    pub(crate) fn of_package(package: &str, kept: bool, reason: String) -> Self {
        Self {
            package: package.to_owned(),
            bundle: String::new(),
            version: None,
            kept,
            reason,
        }
    }
}
