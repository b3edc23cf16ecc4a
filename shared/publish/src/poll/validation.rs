//! The validation of new content by the rules of OLM, before it is published.

use std::{
    collections::HashMap,
    fmt, str,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use model::{FindingSeverity, Findings, PackageFindings, Sha256, Snapshot, ValidationCounts, ValidationFinding};
use olm::{RULES_VERSION, RuleViolation, Severity, ShardValidator};
use render::{RenderError, Rendering, Shard, StopFlag};
use store::{Store, read_stored};

use super::once::Poll;
use crate::{PollError, Transaction};

/// Number of Packages that each worker validates before their findings are merged: it bounds the findings in memory.
const BATCH: usize = 8;

/// Maximum number of findings that an error names.
const EXAMPLES_MAX: usize = 5;

/// Treatment of content that violates the rules of OLM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ValidationMode {
    /// Publishes without a validation.
    Off,
    /// Publishes, and names the findings.
    #[default]
    Warn,
    /// Does not publish content with errors, unless a poll is forced. Warnings do not count.
    Refuse,
}

/// Text that is not a [`ValidationMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not off, warn or refuse")]
pub struct ValidationModeError(String);

/// Content that is not published, because the catalog refuses errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has {errors}, as `catalog-mirror validate` lists them: {}; correct the catalog, force the poll to publish it as it is, \
     or set validate: warn",
    .examples.join("; "),
    errors = count(*.errors, "error")
)]
pub struct InvalidCatalog {
    /// Number of errors.
    pub errors: u64,
    /// The first errors in words, at most five.
    pub examples: Vec<String>,
}

/// Content that was rendered.
pub(crate) struct NewContent {
    pub(crate) rendering: Rendering,
    /// Published states that it was composed of; empty if it was pulled.
    pub(crate) inputs: Vec<Arc<Snapshot>>,
}

/// Content that may be published, with the findings about it.
pub(crate) struct Validated {
    pub(crate) rendering: Rendering,
    /// `None` if the catalog is not validated.
    pub(crate) findings: Option<Findings>,
}

impl str::FromStr for ValidationMode {
    type Err = ValidationModeError;

    fn from_str(text: &str) -> Result<Self, ValidationModeError> {
        match text {
            "off" => Ok(Self::Off),
            "warn" => Ok(Self::Warn),
            "refuse" => Ok(Self::Refuse),
            other => Err(ValidationModeError(model::text::line(other, 100))),
        }
    }
}

impl InvalidCatalog {
    fn new(findings: &Findings) -> Self {
        let packages = findings.packages.iter();
        let all = packages.flat_map(|package| package.findings.iter().map(|finding| (&*package.name, finding)));
        let errors = all.filter(|(_, finding)| finding.severity == FindingSeverity::Error);
        Self {
            errors: findings.counts.errors,
            examples: errors
                .take(EXAMPLES_MAX)
                .map(|(package, finding)| NamedFinding(package, finding).to_string())
                .collect(),
        }
    }
}

impl Poll<'_> {
    /// Validates what is new in the content. Fails if the catalog refuses what is found.
    pub(crate) async fn validate(
        &mut self,
        transaction: &Transaction,
        content: NewContent,
        recheck: bool,
        stop: &StopFlag,
    ) -> Result<Validated, PollError> {
        let NewContent { rendering, inputs } = content;
        let mode = self.catalog.validation;
        if mode == ValidationMode::Off {
            return Ok(Validated {
                rendering,
                findings: None,
            });
        }
        // A recheck relies on nothing that is stored.
        let base = transaction.base_snapshot().await?;
        let trusted = base
            .into_iter()
            .chain(inputs.iter().map(|input| &**input))
            .filter(|_| !recheck);
        let known = KnownFindings::load(&*self.mirror.store, trusted).await;
        let (workers, stop) = (self.mirror.settings.render.workers.max(1), stop.clone());
        let work = move || {
            let found = validate(&rendering, &known, workers, &stop);
            (rendering, found)
        };
        let (rendering, found) = tokio::task::spawn_blocking(work).await?;
        let (findings, validated) = found?;
        self.report.packages_validated += validated;
        self.judge(&findings)?;
        Ok(Validated {
            rendering,
            findings: Some(findings),
        })
    }

    fn judge(&self, findings: &Findings) -> Result<(), PollError> {
        let ValidationCounts {
            errors,
            warnings,
            unknown_schemas,
        } = findings.counts;
        let first = findings
            .first()
            .map(|(package, finding)| NamedFinding(package, finding));
        match (self.catalog.validation, first) {
            (ValidationMode::Refuse, _) if errors > 0 && !self.force => {
                return Err(InvalidCatalog::new(findings).into());
            }
            (_, Some(first)) if errors > 0 => tracing::warn!(
                errors,
                warnings,
                unknown_schemas,
                %first,
                "the new content violates rules of OLM"
            ),
            (_, Some(first)) => tracing::info!(warnings, unknown_schemas, %first, "the new content has weaknesses"),
            (_, None) => {}
        }
        Ok(())
    }
}

/// Findings of published Snapshots by the lines of their Packages, which count again for the same lines.
#[derive(Default)]
struct KnownFindings(HashMap<Sha256, PackageFindings>);

impl KnownFindings {
    async fn load<'s>(store: &dyn Store, snapshots: impl Iterator<Item = &'s Snapshot>) -> Self {
        let mut known = Self::default();
        for snapshot in snapshots {
            let Some(object) = snapshot.findings else {
                continue;
            };
            match read_stored::<Findings>(store, &object).await {
                Ok(findings) if findings.rules == RULES_VERSION => known.add(snapshot, findings),
                Ok(_) => {}
                // They only save work. The hourly look at the stored objects finds and repairs a damaged document.
                Err(error) => {
                    tracing::warn!(error = model::text::chain(&error), "cannot read the published findings");
                }
            }
        }
        known
    }

    fn add(&mut self, snapshot: &Snapshot, findings: Findings) {
        let packages = findings.packages.into_iter();
        let mut packages: HashMap<String, PackageFindings> =
            packages.map(|package| (package.name.clone(), package)).collect();
        for shard in snapshot.shards() {
            // A package that is not listed has none.
            let found = packages.remove(&shard.name);
            let found = found.unwrap_or_else(|| PackageFindings::new(&shard.name));
            if found.is_complete() {
                self.0.insert(shard.lines.sha256, found);
            }
        }
    }

    /// Returns the findings of a Package with these lines, if all of them are known.
    fn get(&self, shard: &Shard) -> Option<&PackageFindings> {
        self.0.get(&shard.lines.sha256)
    }
}

/// Returns the findings of a catalog, and the number of Shards whose lines were validated. The findings are the same whatever
/// is known.
fn validate(
    rendering: &Rendering,
    known: &KnownFindings,
    workers: usize,
    stop: &StopFlag,
) -> Result<(Findings, usize), RenderError> {
    let shards = rendering.shards();
    let new: Vec<&Shard> = shards.iter().filter(|shard| known.get(shard).is_none()).collect();
    let batches = new.chunks(workers * BATCH);
    let mut validated = batches.flat_map(|batch| validate_batch(rendering, batch, workers, stop));
    let findings = shards.iter().map(|shard| match known.get(shard) {
        Some(findings) => Ok(findings.clone()),
        None => validated.next().expect("each shard that is not known is validated"),
    });
    Ok((Findings::collect(RULES_VERSION, findings)?, new.len()))
}

/// Validates some Shards side by side. The findings come in the order of the Shards.
fn validate_batch(
    rendering: &Rendering,
    batch: &[&Shard],
    workers: usize,
    stop: &StopFlag,
) -> Vec<Result<PackageFindings, RenderError>> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(batch.len()));
    let work = || {
        while let Some((at, shard)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            batch.get(at).map(|shard| (at, shard))
        } {
            let result = validate_shard(rendering, shard, stop);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((at, result));
        }
    };
    match workers.min(batch.len()) {
        // One package changes at most polls.
        1 => work(),
        workers => thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work)))),
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

fn validate_shard(rendering: &Rendering, shard: &Shard, stop: &StopFlag) -> Result<PackageFindings, RenderError> {
    let mut found = PackageFindings::new(&shard.name);
    let mut add = |violation| found.add(finding(violation));
    let mut validator = ShardValidator::new(&shard.name, fbc::is_yaml);
    let read = rendering.read_lines(shard, |lines| {
        if !stop.is_stopped() {
            validator.push(lines, &mut add);
        }
    });
    read.map_err(|error| match error {
        // A shard of the store that does not decompress, which a recheck repairs.
        RenderError::Scratch(_) if shard.is_stored() => RenderError::Damaged {
            sha256: shard.stored.sha256,
        },
        error => error,
    })?;
    if stop.is_stopped() {
        return Err(RenderError::Stopped);
    }
    let counts = validator.finish(&mut add);
    found.add_schemas(counts.other);
    Ok(found)
}

fn finding(violation: RuleViolation) -> ValidationFinding {
    let rule = violation.rule;
    ValidationFinding {
        severity: match rule.severity() {
            Severity::Error | Severity::ServeError => FindingSeverity::Error,
            Severity::Warning => FindingSeverity::Warning,
        },
        rule: rule.code().to_owned(),
        channel: violation.channel,
        bundle: violation.bundle,
        message: match violation.detail.as_str() {
            "" => rule.meaning().to_owned(),
            detail => format!("{}: {detail}", rule.meaning()),
        },
        line: violation.line as u64,
    }
}

/// A finding with the name of its Package, in words.
struct NamedFinding<'a>(&'a str, &'a ValidationFinding);

impl fmt::Display for NamedFinding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(package, finding) = self;
        let package = model::text::line(package, 100);
        let names = [
            ("package", &package),
            ("channel", &finding.channel),
            ("bundle", &finding.bundle),
        ];
        let names = names.iter().filter(|(_, name)| !name.is_empty());
        let names: Vec<String> = names.map(|(kind, name)| format!("{kind} {name}")).collect();
        match names.is_empty() {
            true => write!(f, "{}", finding.message),
            false => write!(f, "{}: {}", names.join(", "), finding.message),
        }
    }
}

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(errors: usize) -> Findings {
        let mut package = PackageFindings::new("db");
        for at in 0..errors {
            package.add(ValidationFinding {
                severity: FindingSeverity::Error,
                rule: "channel-cycle".into(),
                channel: format!("c{at}"),
                bundle: String::new(),
                message: "the channel is a cycle".into(),
                line: 2,
            });
        }
        Findings::collect(1, [Ok::<_, RenderError>(package)]).unwrap()
    }

    #[test]
    fn invalid_catalog_says_what_is_wrong_and_what_to_do() {
        assert_eq!(
            InvalidCatalog::new(&findings(1)).to_string(),
            "it has 1 error, as `catalog-mirror validate` lists them: package db, channel c0: the channel is a cycle; \
             correct the catalog, force the poll to publish it as it is, or set validate: warn"
        );
        let many = InvalidCatalog::new(&findings(7));
        assert_eq!((many.errors, many.examples.len()), (7, EXAMPLES_MAX));
    }

    #[test]
    fn validation_mode_reads_its_three_words() {
        let modes = ["off", "warn", "refuse"].map(|text| text.parse::<ValidationMode>().unwrap());
        assert_eq!(
            modes,
            [ValidationMode::Off, ValidationMode::Warn, ValidationMode::Refuse]
        );
        assert_eq!(
            "Warn".parse::<ValidationMode>().unwrap_err().to_string(),
            "\"Warn\" is not off, warn or refuse"
        );
    }
}
