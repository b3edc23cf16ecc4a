use std::collections::BTreeSet;

use serde::Serialize;

/// Maximum number of notices that are kept; the others are counted. A catalog may cause one for
/// each of its documents.
const NOTICES_MAX: usize = 1000;

/// Reasons and remarks of a composition, beside its content.
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
    /// Name of the package that has the bundle.
    pub package: String,
    /// Name of the bundle; empty if the whole package is meant.
    pub bundle: String,
    /// Version of the bundle, as the catalog writes it.
    pub version: Option<String>,
    /// True if the bundle is in.
    pub kept: bool,
    /// Reason for people, such as the range that leaves the bundle out.
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
        let mut packages_in: BTreeSet<&String> = BTreeSet::new();
        let mut bundles_in = 0;
        let mut bundles_out = 0;
        for decision in &decisions {
            if decision.kept {
                packages_in.insert(&decision.package);
            }
            if decision.bundle.is_empty() {
                continue;
            }
            if decision.kept {
                bundles_in += 1;
            } else {
                bundles_out += 1;
            }
        }
        let packages_in = packages_in.len();

        let packages_out =
            decisions.extract_if(.., |decision| !decision.kept && decision.bundle.is_empty());
        let mut packages_out: Vec<Decision> = packages_out.collect();
        packages_out.sort_by(|one, other| one.reason.cmp(&other.reason));
        for same in packages_out.chunk_by(|one, other| one.reason == other.reason) {
            let mut row = same[same.len() - 1].clone();
            if same.len() > 1 {
                row.package = format!("({} packages)", same.len());
            }
            decisions.push(row);
        }
        let sum = format!(
            "in: packages {packages_in}, bundles {bundles_in}; out: bundles {bundles_out}, whole packages {}",
            packages_out.len()
        );
        Self {
            rows: decisions,
            sum,
        }
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
    /// Returns the reason for which a whole package is in the composition.
    pub(crate) fn taken(package: &str, reason: String) -> Self {
        Self {
            package: package.to_owned(),
            bundle: String::new(),
            version: None,
            kept: true,
            reason,
        }
    }

    /// Returns the reason for which a whole package is not in the composition.
    pub(crate) fn left_out(package: &str, reason: String) -> Self {
        Self {
            kept: false,
            ..Self::taken(package, reason)
        }
    }
}
