//! Grants that others include, found by their words instead of by comparing each with each.

use std::collections::{HashMap, HashSet};

use super::{Grant, Permissions, TargetKind};

/// Grants by all but their target.
#[derive(Debug, Default)]
pub(super) struct Coverage<'a>(HashMap<CoverageKey<'a>, Targets<'a>>);

/// Words of a grant without its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CoverageKey<'a> {
    account: &'a str,
    is_everywhere: bool,
    kind: TargetKind,
    group: &'a str,
    name: &'a str,
    verb: &'a str,
}

/// Targets of the grants with one key.
#[derive(Debug, Default)]
struct Targets<'a> {
    /// Targets as they are written.
    written: HashSet<&'a str>,
    /// Patterns in ascending order. None of them begins with another one.
    patterns: Vec<TargetPattern<'a>>,
}

/// Target that stands for others.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TargetPattern<'a> {
    /// Beginning of the targets that it stands for, as [`matched`] gives them.
    start: String,
    written: &'a str,
}

impl<'a> Coverage<'a> {
    pub(super) fn new(permissions: &'a Permissions) -> Self {
        let mut coverage = Self::default();
        for grant in permissions {
            let targets = coverage.0.entry(CoverageKey::of(grant)).or_default();
            targets.written.insert(&grant.target);
            targets.patterns.extend(TargetPattern::of(grant));
        }
        for targets in coverage.0.values_mut() {
            targets.patterns.sort_unstable();
            targets
                .patterns
                .dedup_by(|one, kept| one.start.starts_with(&kept.start));
        }
        coverage
    }

    /// Returns true if everything that a grant allows is allowed here too.
    pub(super) fn covers(&self, grant: &Grant) -> bool {
        let target = matched(grant);
        let mut keys = CoverageKey::covering(grant);
        keys.any(|key| {
            let targets = self.0.get(&key);
            targets.is_some_and(|targets| {
                targets.has_all()
                    || targets.written.contains(&*grant.target)
                    || targets.pattern(&target).is_some()
            })
        })
    }

    /// Returns true if a grant of these is included in another one of them. Of two that allow the
    /// same the first one is included in none.
    pub(super) fn includes_in_another(&self, grant: &Grant) -> bool {
        let own = CoverageKey::of(grant);
        let target = matched(grant);
        let mut keys = CoverageKey::covering(grant);
        keys.any(|key| {
            let Some(targets) = self.0.get(&key) else {
                return false;
            };
            let pattern = targets.pattern(&target);
            if key == own {
                return targets.has_all() && grant.target != "*"
                    || pattern.is_some_and(|pattern| pattern.written != grant.target);
            }
            targets.has_all() || targets.written.contains(&*grant.target) || pattern.is_some()
        })
    }
}

impl<'a> CoverageKey<'a> {
    fn of(grant: &'a Grant) -> Self {
        Self {
            account: &grant.account,
            is_everywhere: grant.is_everywhere,
            kind: grant.kind,
            group: &grant.group,
            name: &grant.name,
            verb: &grant.verb,
        }
    }

    /// Returns the keys of all grants that may cover a grant. Some of them may be the same.
    fn covering(grant: &'a Grant) -> impl Iterator<Item = Self> {
        let own = Self::of(grant);
        let places = [own.is_everywhere, true].into_iter();
        places.flat_map(move |is_everywhere| {
            let groups = [own.group, "*"].into_iter();
            groups.flat_map(move |group| {
                let names = [own.name, ""].into_iter();
                names.flat_map(move |name| {
                    [own.verb, "*"].into_iter().map(move |verb| Self {
                        is_everywhere,
                        group,
                        name,
                        verb,
                        ..own
                    })
                })
            })
        })
    }
}

impl Targets<'_> {
    fn has_all(&self) -> bool {
        self.written.contains("*")
    }

    /// Returns the pattern that stands for a target.
    fn pattern(&self, target: &str) -> Option<&TargetPattern<'_>> {
        // No pattern begins with another one, so only the last one before the target may match.
        let behind = self
            .patterns
            .partition_point(|pattern| pattern.start.as_str() <= target);
        let pattern = &self.patterns[behind.checked_sub(1)?];
        target.starts_with(&pattern.start).then_some(pattern)
    }
}

impl<'a> TargetPattern<'a> {
    /// Returns the pattern of a grant, if its target is one.
    fn of(grant: &'a Grant) -> Option<Self> {
        let start = match grant.kind {
            // A subresource of all resources.
            TargetKind::Resource if grant.target.starts_with("*/") => reversed(&grant.target[1..]),
            // As in Kubernetes (`NonResourceURLMatches`), all asterisks at the end are one.
            TargetKind::Url if grant.target.ends_with('*') => {
                grant.target.trim_end_matches('*').to_owned()
            }
            _ => return None,
        };
        Some(Self {
            start,
            written: &grant.target,
        })
    }
}

/// Returns the target of a grant as patterns match it: patterns of resources are ends of names.
fn matched(grant: &Grant) -> String {
    match grant.kind {
        TargetKind::Resource => reversed(&grant.target),
        TargetKind::Url | TargetKind::Role => grant.target.clone(),
    }
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}
