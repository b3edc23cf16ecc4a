//! New content that looks like an accident: it is compared with the published state, and held back.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::hold::{HoldComparison, HoldRule};
use model::{
    Facts, Hold, RejectedRevision, Sha256, Snapshot, Status, ValidationCounts, text::Chain,
};
use olm::{FINDINGS, Package, PackageParser, ValidationSummary};
use render::{RenderError, RenderSettings, Rendering, Shard};
use store::{Store, read_stored};
use work::{Budget, run};

use super::mirror::Mirror;
use super::pull::PublishedShards;
use crate::{Catalog, HoldSettings, PollError, env::whole_seconds};

/// Time without a successful poll after which the source may have had many updates. Their number of
/// packages says nothing then.
const ONE_UPDATE_MAX: Duration = Duration::from_hours(3 * 24);

/// Comparison of new content with a published state.
pub(super) struct HoldJudge<'a> {
    pub(super) mirror: &'a Mirror,
    pub(super) catalog: &'a Catalog,
    /// Published state.
    pub(super) base: &'a Snapshot,
    /// Hash of its Snapshot.
    pub(super) base_hash: Option<Sha256>,
    /// `status.json` as it was before the poll.
    pub(super) status: Option<&'a Status>,
    /// Revision of the source.
    pub(super) revision: &'a str,
    /// Budget of the poll.
    pub(super) budget: &'a Budget,
}

/// Reasons to hold new content back, as far as they are known before its validation.
#[derive(Default)]
pub(super) struct HoldReasons {
    reasons: Vec<String>,
    /// Number of errors that the validation found in the published state, if more are a reason.
    errors_before: Option<u64>,
    /// Hold of the content, if there is a reason.
    hold: Option<Hold>,
}

/// Package that both states have with other lines, or that is gone.
struct Differing {
    old: usize,
    new: Option<usize>,
}

impl HoldJudge<'_> {
    /// Compares the content. Nothing is read if no rule could hold it.
    pub(super) async fn compare(
        &self,
        rendering: &Arc<Rendering>,
    ) -> Result<HoldReasons, PollError> {
        let now = (self.mirror.settings.env.clock)();
        let settings = &self.catalog.hold;
        let Some(hold) = self.hold(settings, now) else {
            return Ok(HoldReasons::default());
        };
        let mut rules = settings.rules_for(&self.catalog.source);
        if self.has_gap(now) {
            rules.retain(|rule| !rule.is_about_one_update());
        }
        if rules.is_empty() {
            return Ok(HoldReasons::default());
        }
        let errors_before = if rules.contains(&HoldRule::Validation) {
            errors(&*self.mirror.store, self.base).await
        } else {
            None
        };
        Ok(HoldReasons {
            reasons: self.differences(rules, rendering).await?,
            errors_before,
            hold: Some(hold),
        })
    }

    /// Returns the hold that the content would have; `None` if it is let through.
    fn hold(&self, settings: &HoldSettings, now: SystemTime) -> Option<Hold> {
        let mut since = whole_seconds(now);
        if let Some((rejected, hold)) = self.known_hold() {
            if hold.released && rejected.inputs.revision == self.revision {
                return None;
            }
            // A later time was dated by a wrong clock.
            since = since.min(hold.since);
        }
        let hold = Hold {
            since,
            until: settings.time.map(|time| since + time),
            released: false,
        };
        (!hold.is_over(now)).then_some(hold)
    }

    /// Returns the hold of another revision, or of this one, over the same published state.
    fn known_hold(&self) -> Option<(&RejectedRevision, &Hold)> {
        let (rejected, hold) = self.status?.held()?;
        (rejected.base == self.base_hash).then_some((rejected, hold))
    }

    /// Returns true if the source may have had many updates since the last successful poll.
    fn has_gap(&self, now: SystemTime) -> bool {
        let last = self.status.and_then(|status| status.last_success);
        let age = last.and_then(|last| now.duration_since(last).ok());
        // While content is held, polls go on without success.
        self.known_hold().is_none() && age.is_some_and(|age| age > ONE_UPDATE_MAX)
    }

    /// Returns the differences that are reasons.
    async fn differences(
        &self,
        rules: BTreeSet<HoldRule>,
        rendering: &Arc<Rendering>,
    ) -> Result<Vec<String>, PollError> {
        let stored = PublishedShards::new(self.mirror.store.clone(), [self.base], None);
        let settings = RenderSettings {
            budget: self.budget.clone(),
            ..RenderSettings::default()
        };
        let reading = ReadStates {
            old: Rendering::of_snapshot(self.base, Arc::new(stored), settings),
            new: rendering.clone(),
            budget: self.budget.clone(),
        };
        let installed = self.catalog.hold.installed.clone();
        let packages = self.base.packages.len();
        let compared = run(self.budget.clone(), move || {
            let comparison = HoldComparison::new(&rules, &installed, packages);
            reading.compare(comparison)
        });
        Ok(compared.await??)
    }
}

/// Reader of the packages of two states.
struct ReadStates {
    old: Rendering,
    new: Arc<Rendering>,
    budget: Budget,
}

impl ReadStates {
    /// Compares the packages that differ. Blocks.
    fn compare(&self, mut comparison: HoldComparison<'_>) -> Result<Vec<String>, RenderError> {
        let differing = self.differing();
        let gone = differing.iter().filter(|shard| shard.new.is_none()).count();
        if !comparison.can_hold(differing.len(), gone) {
            return Ok(Vec::new());
        }
        for Differing { old, new } in differing {
            let old = &self.old.shards()[old];
            let new = new.map(|new| &self.new.shards()[new]);
            if new.is_none() && !comparison.needs_gone(&old.name) {
                comparison.add_gone(&old.name);
                continue;
            }
            let before = match self.package(&self.old, old) {
                Err(error) if error.is_damage() => {
                    // The poll repairs it. Until then the package cannot be compared.
                    let package = old.name.as_str();
                    tracing::warn!(
                        package,
                        error = %Chain(&error),
                        "cannot read a published package to compare it"
                    );
                    continue;
                }
                read => read?,
            };
            let after = new.map(|new| self.package(&self.new, new)).transpose()?;
            let added = comparison.add(&old.name, &before, after.as_ref(), &self.budget);
            if added.is_err() {
                self.new.check_budget()?;
            }
        }
        Ok(comparison.reasons())
    }

    /// Returns the packages that both states have with other lines, and those that are gone.
    fn differing(&self) -> Vec<Differing> {
        let new = self.new.shards().iter().enumerate();
        let new: HashMap<&str, usize> = new.map(|(at, shard)| (shard.name.as_str(), at)).collect();
        let mut differing = Vec::new();
        for (old, shard) in self.old.shards().iter().enumerate() {
            let new = new.get(shard.name.as_str()).copied();
            let is_same = new.is_some_and(|new| self.new.shards()[new].lines == shard.lines);
            // The global group is no package.
            if !is_same && !shard.name.is_empty() {
                differing.push(Differing { old, new });
            }
        }
        differing
    }

    fn package(&self, rendering: &Rendering, shard: &Shard) -> Result<Package, RenderError> {
        let mut parser = PackageParser::default();
        rendering.read_lines(shard, |lines| {
            if self.budget.charge_bytes(lines.len()).is_ok() {
                parser.push(lines);
            }
        })?;
        rendering.check_budget()?;
        Ok(parser.finish())
    }
}

impl HoldReasons {
    /// Fails if the content is held back. `counts` are the findings about it.
    pub(super) fn check(
        &self,
        catalog: &Catalog,
        counts: Option<ValidationCounts>,
    ) -> Result<(), PollError> {
        let Some(hold) = &self.hold else {
            return Ok(());
        };
        let mut reasons = self.reasons.clone();
        if let (Some(before), Some(counts)) = (self.errors_before, counts)
            && counts.errors > before
        {
            let rule = HoldRule::Validation.as_str();
            let errors = counts.errors;
            reasons.push(format!(
                "the validation finds {errors} errors, and {before} before ({rule})"
            ));
        }
        if reasons.is_empty() {
            return Ok(());
        }
        let until = match hold.until {
            Some(until) => format!("until {}", humantime::format_rfc3339_seconds(until)),
            None => "until it is released".to_owned(),
        };
        let reasons = reasons.join("; ");
        let name = &catalog.name;
        Err(PollError::Held {
            text: format!(
                "the new content looks like an accident and is held back {until}: {reasons}; \
                 `catalog-mirror diff --held {name}` shows it, `catalog-mirror release {name}` or `poll --force` publishes it"
            ),
            hold: hold.clone(),
            is_known: false,
        })
    }
}

/// Returns the number of errors that the validation found in a published state; `None` if it was not
/// validated or its findings cannot be read.
async fn errors(store: &dyn Store, snapshot: &Snapshot) -> Option<u64> {
    let object = snapshot.facts.get(FINDINGS.name)?;
    match read_stored::<Facts>(store, object).await {
        Ok(facts) => {
            let summary = ValidationSummary::of(&facts).ok()?;
            Some(summary.counts.errors)
        }
        Err(error) => {
            tracing::warn!(
                error = %Chain(&error),
                "cannot read the published findings to compare them"
            );
            None
        }
    }
}
