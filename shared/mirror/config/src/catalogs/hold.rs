//! Rules by which new content is held back, and the time for which it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ::hold::{HoldRule, InstalledVersion};
use model::text::did_you_mean;
use publish::HoldSettings;
use serde_json::Value;
use upgrade::plan::Installed;
use work::Budget;

use super::duration;
use super::section::{Section, text};
use crate::problems::Problems;

/// Word for no rule.
const OFF: &str = "off";

/// Word for the rules that hold by default.
const DEFAULT: &str = "default";

/// Word for all rules.
const ALL: &str = "all";

/// Word for a hold that only a person ends.
const NEVER: &str = "never";

/// Settings of a catalog or of all, as far as they are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnHold {
    pub(crate) rules: Option<BTreeSet<HoldRule>>,
    pub(crate) time: Option<HoldTime>,
    installed: Option<InstalledFile>,
}

/// Time for which content is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldTime {
    For(Duration),
    UntilReleased,
}

/// File with the versions that clusters have, and the place where it is configured.
#[derive(Debug, Clone)]
struct InstalledFile {
    place: String,
    path: PathBuf,
}

impl OwnHold {
    /// Takes `hold`, `holdFor` and `holdInstalled` of a section.
    pub(crate) fn read(section: &mut Section) -> Self {
        let rules = section.value("hold").and_then(|value| {
            let words = words(&value);
            section.problems.ok(section.place_of("hold"), rules(&words))
        });
        let installed = section.field("holdInstalled").map(|path| InstalledFile {
            place: section.place_of("holdInstalled"),
            path,
        });
        Self {
            rules,
            time: section.parsed("holdFor", hold_time),
            installed,
        }
    }

    /// Replaces what another document writes again.
    pub(crate) fn replace(&mut self, newer: Self) {
        self.rules = newer.rules.or(self.rules.take());
        self.time = newer.time.or(self.time);
        self.installed = newer.installed.or(self.installed.take());
    }

    /// Sets what is written. `no_files` refuses paths.
    pub(crate) fn apply(&self, hold: &mut HoldSettings, no_files: bool, problems: &Problems) {
        if let Some(rules) = &self.rules {
            hold.rules = Some(rules.clone());
        }
        match self.time {
            Some(HoldTime::For(time)) => hold.time = Some(time),
            Some(HoldTime::UntilReleased) => hold.time = None,
            None => {}
        }
        let Some(file) = &self.installed else {
            return;
        };
        let installed = if no_files {
            Err("files are not read here".to_owned())
        } else {
            file.read()
        };
        let Some(installed) = problems.ok(&file.place, installed) else {
            return;
        };
        hold.installed = installed;
        let rules = hold.rules.get_or_insert_with(|| HoldRule::DEFAULT.into());
        rules.insert(HoldRule::Installed);
    }
}

/// Adds a problem if a catalog has the rule for installed versions, and no file with them.
pub(crate) fn check(hold: &HoldSettings, place: &str, problems: &Problems) {
    let Some(rules) = &hold.rules else {
        return;
    };
    let is_all = rules.len() == HoldRule::ALL.len();
    if rules.contains(&HoldRule::Installed) && hold.installed.is_empty() && !is_all {
        let problem = "the rule installed needs a file in holdInstalled";
        problems.add(place, problem);
    }
}

impl InstalledFile {
    /// Reads the versions. A ClusterServiceVersion whose package is not known is left out.
    fn read(&self) -> Result<Vec<InstalledVersion>, String> {
        let path = self.path.display();
        let text = fs::read_to_string(&self.path)
            .map_err(|error| format!("{path} cannot be read: {error}"))?;
        let installed = Installed::parse(&text, &Budget::default())
            .map_err(|error| format!("{path}: {}", model::text::chain(&error)))?;
        let known = installed.operators.into_iter();
        let known = known.filter(|operator| !operator.package.is_empty());
        Ok(known
            .map(|operator| InstalledVersion {
                start: operator.step(),
                package: operator.package,
                channel: operator.channel,
            })
            .collect())
    }
}

/// Returns the words of a text or of a list of texts.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().map(word).collect(),
        value => vec![word(value)],
    }
}

fn word(value: &Value) -> String {
    match value {
        // YAML 1.1 reads `off` as false.
        Value::Bool(false) => OFF.to_owned(),
        value => text(value),
    }
}

/// Parses the rules of an annotation, which are separated by commas.
pub(crate) fn rules_of_text(text: &str) -> Result<BTreeSet<HoldRule>, String> {
    let words: Vec<String> = text.split(',').map(|word| word.trim().to_owned()).collect();
    rules(&words)
}

/// Parses rules. `default` and `all` stand for several.
fn rules(words: &[String]) -> Result<BTreeSet<HoldRule>, String> {
    if words == [OFF] {
        return Ok(BTreeSet::new());
    }
    if words.is_empty() {
        return Err(format!("names no rule: write {OFF} for none"));
    }
    let mut rules = BTreeSet::new();
    for word in words {
        match word.as_str() {
            DEFAULT => rules.extend(HoldRule::DEFAULT),
            ALL => rules.extend(HoldRule::ALL.iter().copied()),
            word => {
                let rule = word.parse().map_err(|_| unknown_rule(word))?;
                rules.insert(rule);
            }
        }
    }
    Ok(rules)
}

fn unknown_rule(word: &str) -> String {
    let mut known = vec![DEFAULT, ALL];
    known.extend(HoldRule::ALL.iter().map(|rule| rule.as_str()));
    let similar = did_you_mean(word, known.iter().copied());
    let shown = model::text::line(word, 100);
    format!(
        "{shown:?} is no rule{similar}; there are {}, and {OFF} alone",
        known.join(", ")
    )
}

/// Parses the time for which content is held: at most 365 days, or `never` for no end by time.
pub(crate) fn hold_time(text: &str) -> Result<HoldTime, String> {
    if text == NEVER {
        return Ok(HoldTime::UntilReleased);
    }
    match duration(text) {
        Ok(time) if time.is_zero() => Err(format!(
            "{text} is no time: write hold: {OFF} to hold nothing"
        )),
        Ok(time) => Ok(HoldTime::For(time)),
        Err(error) => Err(format!("{error}, or {NEVER}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_problems, load};
    use super::*;

    fn hold(text: &str) -> HoldSettings {
        load(text).unwrap().catalogs.remove(0).hold
    }

    #[test]
    fn hold_of_a_catalog_wins_over_that_of_all() {
        let catalogs =
            |own: &str| format!("catalogs: [{{name: a, source: 'quay.io/a/b:v1'{own}}}]");
        assert_eq!(hold(&catalogs("")), HoldSettings::default());
        let default = BTreeSet::from(HoldRule::DEFAULT);
        for (text, rules, time) in [
            (catalogs(", hold: off"), Some(BTreeSet::new()), Some(3)),
            (catalogs(", holdFor: never"), None, None),
            (
                format!("hold: [default, head]\nholdFor: 5d\n{}", catalogs("")),
                Some(default.iter().copied().chain([HoldRule::Head]).collect()),
                Some(5),
            ),
            (
                format!(
                    "hold: all\nholdFor: 5d\n{}",
                    catalogs(", hold: default, holdFor: 1d")
                ),
                Some(default.clone()),
                Some(1),
            ),
        ] {
            let expected = HoldSettings {
                rules,
                time: time.map(|days| Duration::from_hours(24 * days)),
                ..HoldSettings::default()
            };
            assert_eq!(hold(&text), expected, "{text}");
        }
    }

    #[test]
    fn installed_file_turns_its_rule_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("installed");
        fs::write(&path, "etcd 0.9.4 stable\nkafka 1.0.0\n").unwrap();
        let text = format!(
            "{{holdInstalled: {}, catalogs: [{{name: a, source: 'quay.io/a/b:v1'}}]}}",
            path.display()
        );
        let hold = hold(&text);
        assert!(hold.rules.unwrap().contains(&HoldRule::Installed));
        let found: Vec<_> = hold
            .installed
            .iter()
            .map(|one| format!("{} {:?} {}", one.package, one.channel, one.start.label()))
            .collect();
        assert_eq!(found, ["etcd Some(\"stable\") 0.9.4", "kafka None 1.0.0"]);
    }

    const WRONG: &str = r#"
hold: [] => hold: names no rule
hold: heads => hold: "heads" is no rule (did you mean head?); there are default, all, many-channels
hold: [off, head] => hold: "off" is no rule
hold: installed => the rule installed needs a file in holdInstalled
holdFor: 0s => holdFor: 0s is no time
holdFor: soon => holdFor: "soon" is not a duration
holdInstalled: /none => holdInstalled: /none cannot be read
catalogs: [{name: a, source: 'x/a/a:v1', hold: heads}] => catalog a, hold: "heads" is no rule
"#;

    #[test]
    fn wrong_rule_is_a_problem_of_its_field() {
        check_problems(WRONG, |text| match text.starts_with("catalogs") {
            true => text.to_owned(),
            false => format!("{{{text}, catalogs: [{{name: a, source: 'quay.io/a/b:v1'}}]}}"),
        });
    }
}
