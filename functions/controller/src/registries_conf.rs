//! Mirrors of registries, and registries that are blocked, from the files of podman and CRI-O
//! (containers-registries.conf(5)).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::{Context, anyhow};
use serde::Deserialize;
use source::{RegistryMirror, RegistryRule};

use crate::authorities::files;

/// File of the rules, and the folder whose files `*.conf` add some.
const FILE: &str = "/etc/containers/registries.conf";
const FOLDER: &str = "/etc/containers/registries.conf.d";

/// Variable that names another file.
const FILE_VARIABLE: &str = "CONTAINERS_REGISTRIES_CONF";

/// A file of version 2 or 1. Other keys are for the programs that pull images to run them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Document {
    registry: Vec<RegistryTable>,
    /// Rules of version 1, whose table `block` counts.
    registries: BTreeMap<String, RegistryNames>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RegistryNames {
    registries: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct RegistryTable {
    prefix: String,
    location: String,
    blocked: bool,
    mirror_by_digest_only: bool,
    mirror: Vec<MirrorTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MirrorTable {
    location: String,
    #[serde(default)]
    pull_from_mirror: PullFromMirror,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum PullFromMirror {
    #[default]
    All,
    DigestOnly,
    TagOnly,
}

/// Returns the rules of this machine. Files that do not exist have none. Without those of a file
/// that cannot be read an image might be pulled from a registry that is blocked.
pub(crate) fn read() -> anyhow::Result<Vec<RegistryRule>> {
    let file = env::var_os(FILE_VARIABLE).map_or_else(|| FILE.into(), PathBuf::from);
    read_from(&file, Path::new(FOLDER))
}

/// A later file replaces the rule of the same prefix.
fn read_from(file: &Path, folder: &Path) -> anyhow::Result<Vec<RegistryRule>> {
    let mut all = vec![file.to_owned()];
    all.extend(if_there(files(folder, "conf"), folder)?.unwrap_or_default());
    let mut rules: Vec<RegistryRule> = Vec::new();
    for file in all {
        let Some(text) = if_there(fs::read_to_string(&file), &file)? else {
            continue;
        };
        let file = file.display();
        let document = toml::from_str::<Document>(&text);
        let mut document = document.with_context(|| format!("cannot parse {file}"))?;
        let blocked = document
            .registries
            .remove("block")
            .unwrap_or_default()
            .registries;
        let blocked = blocked.into_iter().map(|location| RegistryTable {
            location,
            blocked: true,
            ..RegistryTable::default()
        });
        let mut own: Vec<RegistryRule> = Vec::new();
        for table in document.registry.into_iter().chain(blocked) {
            let name = table.name().to_owned();
            let rule = match rule(table) {
                Ok(rule) if contradicts(&own, &rule) => Err("is both blocked and not"),
                rule => rule,
            };
            let rule = rule.map_err(|problem| anyhow!("{file}: registry {name:?} {problem}"))?;
            // Of one file the first table of a prefix counts.
            if own.iter().all(|known| known.prefix != rule.prefix) {
                own.push(rule);
            }
        }
        rules.retain(|known| own.iter().all(|rule| rule.prefix != known.prefix));
        rules.extend(own);
    }
    Ok(rules)
}

/// Returns what was read; `None` if there is no such file or folder.
fn if_there<T>(read: io::Result<T>, path: &Path) -> anyhow::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read
            .map(Some)
            .with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Returns true if another rule for the same place decides otherwise about its pulls.
fn contradicts(rules: &[RegistryRule], rule: &RegistryRule) -> bool {
    let place = |rule: &RegistryRule| rule.location.clone().unwrap_or_else(|| rule.prefix.clone());
    let mut same = rules.iter().filter(|known| place(known) == place(rule));
    same.any(|known| known.is_blocked != rule.is_blocked)
}

impl RegistryTable {
    /// Returns the text by which a person finds the table.
    fn name(&self) -> &str {
        if self.prefix.is_empty() {
            &self.location
        } else {
            &self.prefix
        }
    }
}

fn rule(table: RegistryTable) -> Result<RegistryRule, &'static str> {
    let prefix = place(table.name()).ok_or("has neither prefix nor location")?;
    let mut texts = [&table.prefix, &table.location].into_iter();
    if texts.any(|text| text.contains("://")) {
        return Err("has a scheme: write HOST[:PORT][/PATH]");
    }
    let mirror = |mirror: MirrorTable| {
        let only = match (table.mirror_by_digest_only, mirror.pull_from_mirror) {
            (true, PullFromMirror::TagOnly) => {
                return Err("has mirror-by-digest-only and a mirror for tags only");
            }
            (true, _) => PullFromMirror::DigestOnly,
            (false, only) => only,
        };
        Ok(RegistryMirror {
            location: place(&mirror.location).ok_or("has a mirror without location")?,
            for_tags: only != PullFromMirror::DigestOnly,
            for_digests: only != PullFromMirror::TagOnly,
        })
    };
    Ok(RegistryRule {
        prefix,
        location: place(&table.location),
        is_blocked: table.blocked,
        mirrors: table
            .mirror
            .into_iter()
            .map(mirror)
            .collect::<Result<_, _>>()?,
    })
}

/// Returns a host with a path, without a slash at its end.
fn place(text: &str) -> Option<String> {
    let text = text.trim_end_matches('/');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules of a file and of files in the folder, or the error.
    fn rules(file: &str, added: &[(&str, &str)]) -> Result<Vec<RegistryRule>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("registries.conf");
        fs::write(&path, file).unwrap();
        let folder = dir.path().join("d");
        fs::create_dir(&folder).unwrap();
        for (name, text) in added {
            fs::write(folder.join(name), text).unwrap();
        }
        read_from(&path, &folder).map_err(|error| model::text::chain(error.as_ref()))
    }

    /// Returns rules as `PREFIX at LOCATION`, with the mirrors and what these are for.
    fn show(rules: &[RegistryRule]) -> Vec<String> {
        let flag = |is_set, text: &'static str| if is_set { text } else { "" };
        let mirror = |mirror: &RegistryMirror| {
            let (tags, digests) = (
                flag(mirror.for_tags, "+tags"),
                flag(mirror.for_digests, "+digests"),
            );
            format!(" {}{tags}{digests}", mirror.location)
        };
        let rule = |rule: &RegistryRule| {
            let (place, blocked) = (rule.location.as_deref(), flag(rule.is_blocked, " blocked"));
            let mirrors: String = rule.mirrors.iter().map(mirror).collect();
            format!(
                "{} at {}{blocked}{mirrors}",
                rule.prefix,
                place.unwrap_or_default()
            )
        };
        rules.iter().map(rule).collect()
    }

    const FILE: &str = r#"
unqualified-search-registries = ["docker.io"]
short-name-mode = "enforcing"

[[registry]]
prefix = "quay.io/a"
location = "internal.lab/a/"
insecure = true

[[registry.mirror]]
location = "one.lab"

[[registry.mirror]]
location = "two.lab:5000/x/"
pull-from-mirror = "digest-only"

[[registry.mirror]]
location = "three.lab"
pull-from-mirror = "tag-only"

[[registry]]
location = "bad.io"
blocked = true

[[registry]]
location = "digests.io"
mirror-by-digest-only = true

[[registry.mirror]]
location = "four.lab"
"#;

    #[test]
    fn tables_become_rules() {
        let expected = [
            "quay.io/a at internal.lab/a one.lab+tags+digests two.lab:5000/x+digests three.lab+tags",
            "bad.io at bad.io blocked",
            "digests.io at digests.io four.lab+digests",
        ];
        assert_eq!(show(&rules(FILE, &[]).unwrap()), expected);
        let version_1 = "[registries.search]\nregistries = ['a.io']\n[registries.block]\nregistries = ['bad.io/']\n";
        assert_eq!(
            show(&rules(version_1, &[]).unwrap()),
            ["bad.io at bad.io blocked"]
        );
    }

    #[test]
    fn first_table_of_a_prefix_counts_and_that_of_the_last_file() {
        let table =
            |location: &str| format!("[[registry]]\nprefix = 'a.io'\nlocation = '{location}'\n");
        let file = format!("{}{}", table("b.io"), table("c.io"));
        assert_eq!(show(&rules(&file, &[]).unwrap()), ["a.io at b.io"]);
        let added = [
            ("2.conf", &*table("e.io")),
            ("1.conf", &table("d.io")),
            ("3.txt", "{"),
        ];
        assert_eq!(show(&rules(&file, &added).unwrap()), ["a.io at e.io"]);
        let nowhere = Path::new("/nonexistent/a");
        assert_eq!(read_from(nowhere, nowhere).unwrap(), []);
    }

    #[test]
    fn wrong_file_is_an_error_that_names_it() {
        let registry = "[[registry]]\nlocation = 'a'\n";
        let mirror = format!("{registry}[[registry.mirror]]\nlocation = ");
        let digests = format!("{registry}mirror-by-digest-only = true\n");
        let tags = "[[registry.mirror]]\nlocation = 'b'\npull-from-mirror = 'tag-only'";
        for (file, problem) in [
            ("[[registry]\n", "cannot parse"),
            ("registry = 'a'\n", "cannot parse"),
            ("[[registry]]\nblocked = 'yes'\n", "blocked"),
            (
                "[[registry]]\nblocked = true\n",
                "has neither prefix nor location",
            ),
            (&format!("{mirror}''"), "mirror without location"),
            (
                &format!("{mirror}'b'\npull-from-mirror = 'never'"),
                "pull-from-mirror",
            ),
            (&format!("{digests}{tags}"), "tags only"),
            (
                "[[registry]]\nlocation = 'https://a'\nblocked = true\n",
                "has a scheme",
            ),
            (
                &format!("{registry}blocked = true\n{registry}"),
                "both blocked and not",
            ),
        ] {
            let error = rules(file, &[]).unwrap_err();
            assert!(
                error.contains("registries.conf") && error.contains(problem),
                "{error}"
            );
        }
    }
}
