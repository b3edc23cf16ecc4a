//! Mirrors of registries, and registries that are blocked, from the files of podman and CRI-O
//! (containers-registries.conf(5)).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde::Deserialize;

use crate::{RegistryMirror, RegistryRule};

/// Folder of the files of the host.
const SYSTEM_FOLDER: &str = "/etc/containers";

/// Folder of the files of a person, below the home directory.
const OWN_FOLDER: &str = ".config/containers";

/// File of the rules.
const FILE: &str = "registries.conf";

/// Folder beside the file, whose files `*.conf` add rules.
const FOLDER: &str = "registries.conf.d";

/// Variable that names another file.
const FILE_VARIABLE: &str = "CONTAINERS_REGISTRIES_CONF";

/// Files of the rules for registries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistriesConf {
    /// Main file.
    file: PathBuf,
    /// True if a person or the environment names the main file.
    is_named: bool,
    /// Folders whose files `*.conf` replace rules of the main file, in their order.
    folders: Vec<PathBuf>,
}

/// Error of reading `registries.conf`.
#[derive(Debug, thiserror::Error)]
pub enum RegistriesConfError {
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// A file is not TOML, or has a value of the wrong type.
    #[error("cannot parse {}", path.display())]
    Parse {
        /// Path of the file.
        path: PathBuf,
        /// The underlying error.
        source: toml::de::Error,
    },
    /// A table that has no meaning.
    #[error("{}: registry {name:?} {problem}", path.display())]
    Rule {
        /// Path of the file.
        path: PathBuf,
        /// Prefix or location of the table.
        name: String,
        /// Fault of the table, and what to write.
        problem: &'static str,
    },
}

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
    insecure: bool,
    blocked: bool,
    mirror_by_digest_only: bool,
    mirror: Vec<MirrorTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MirrorTable {
    location: String,
    #[serde(default)]
    insecure: bool,
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

impl RegistriesConf {
    /// Returns the files that podman and skopeo would read on this host: `named`, else the file of
    /// `CONTAINERS_REGISTRIES_CONF`, else that of the home directory with its folder alone, else
    /// that of the host. Beside a file that is named, both folders count.
    pub fn of_host(named: Option<&Path>) -> Self {
        let variable = env::var_os(FILE_VARIABLE).map(PathBuf::from);
        let named = named.map(Path::to_owned).or(variable);
        let home = env::var_os("HOME").map(PathBuf::from);
        let own = home.map(|home| home.join(OWN_FOLDER));
        Self::choose(named, own, Path::new(SYSTEM_FOLDER))
    }

    fn choose(named: Option<PathBuf>, own: Option<PathBuf>, system: &Path) -> Self {
        let own_file = own.as_ref().map(|own| own.join(FILE));
        let own_folder = own.map(|own| own.join(FOLDER));
        let has_own = own_file.as_ref().is_some_and(|file| file.exists());
        let folders = match &named {
            None if has_own => Vec::new(),
            _ => vec![system.join(FOLDER)],
        };
        let own_file = own_file.filter(|_| has_own);
        let is_named = named.is_some();
        let file = named.or(own_file).unwrap_or_else(|| system.join(FILE));
        Self {
            file,
            is_named,
            folders: folders.into_iter().chain(own_folder).collect(),
        }
    }

    /// Returns the main file if it is not the one that podman and skopeo find by themselves.
    pub fn named_file(&self) -> Option<&Path> {
        self.is_named.then_some(&*self.file)
    }

    /// Reads the rules. A later file replaces the rule of the same prefix. Files that do not exist
    /// have none.
    ///
    /// # Errors
    /// A file that cannot be read: without its rules an image might be pulled from a registry that
    /// is blocked.
    pub fn read(&self) -> Result<Vec<RegistryRule>, RegistriesConfError> {
        let mut all = vec![self.file.clone()];
        for folder in &self.folders {
            let files = work::files_with_extension(folder, "conf");
            all.extend(if_there(files, folder)?.unwrap_or_default());
        }
        let mut rules: Vec<RegistryRule> = Vec::new();
        for path in all {
            let Some(text) = if_there(fs::read_to_string(&path), &path)? else {
                continue;
            };
            let own = rules_of(&text, &path)?;
            rules.retain(|known| own.iter().all(|rule| rule.prefix != known.prefix));
            rules.extend(own);
        }
        Ok(rules)
    }
}

/// Returns the rules of one file.
fn rules_of(text: &str, path: &Path) -> Result<Vec<RegistryRule>, RegistriesConfError> {
    let document = toml::from_str::<Document>(text);
    let mut document = document.map_err(|source| RegistriesConfError::Parse {
        path: path.to_owned(),
        source,
    })?;
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
        let rule = match rule(&table) {
            Ok(rule) if contradicts(&own, &rule) => Err("is both blocked and not"),
            rule => rule,
        };
        let rule = rule.map_err(|problem| RegistriesConfError::Rule {
            path: path.to_owned(),
            name,
            problem,
        })?;
        // Of one file the first table of a prefix counts.
        if own.iter().all(|known| known.prefix != rule.prefix) {
            own.push(rule);
        }
    }
    Ok(own)
}

/// Returns what was read; `None` if there is no such file or folder.
fn if_there<T>(read: io::Result<T>, path: &Path) -> Result<Option<T>, RegistriesConfError> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|source| RegistriesConfError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Returns true if another rule for the same place decides otherwise about its pulls.
fn contradicts(rules: &[RegistryRule], rule: &RegistryRule) -> bool {
    let mut same = rules.iter().filter(|known| known.place() == rule.place());
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

impl MirrorTable {
    /// Reads a mirror. `by_digest_only` is what the table of its registry says.
    fn mirror(&self, by_digest_only: bool) -> Result<RegistryMirror, &'static str> {
        let only = match (by_digest_only, self.pull_from_mirror) {
            (true, PullFromMirror::TagOnly) => {
                return Err("has mirror-by-digest-only and a mirror for tags only");
            }
            (true, _) => PullFromMirror::DigestOnly,
            (false, only) => only,
        };
        Ok(RegistryMirror {
            location: place(&self.location).ok_or("has a mirror without location")?,
            for_tags: only != PullFromMirror::DigestOnly,
            for_digests: only != PullFromMirror::TagOnly,
            is_insecure: self.insecure,
        })
    }
}

fn rule(table: &RegistryTable) -> Result<RegistryRule, &'static str> {
    let prefix = place(table.name()).ok_or("has neither prefix nor location")?;
    let mut texts = [&table.prefix, &table.location].into_iter();
    if texts.any(|text| text.contains("://")) {
        return Err("has a scheme: write HOST[:PORT][/PATH]");
    }
    let mut mirrors = Vec::new();
    for mirror in &table.mirror {
        mirrors.push(mirror.mirror(table.mirror_by_digest_only)?);
    }
    Ok(RegistryRule {
        prefix,
        location: place(&table.location),
        is_insecure: table.insecure,
        is_blocked: table.blocked,
        mirrors,
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
        let conf = RegistriesConf {
            file: path,
            is_named: true,
            folders: vec![folder],
        };
        conf.read().map_err(|error| model::text::chain(&error))
    }

    /// Returns rules as `PREFIX at LOCATION`, with the mirrors and what these are for.
    fn show(rules: &[RegistryRule]) -> Vec<String> {
        let flag = |is_set, text: &'static str| if is_set { text } else { "" };
        let mirror = |mirror: &RegistryMirror| {
            let tags = flag(mirror.for_tags, "+tags");
            let digests = flag(mirror.for_digests, "+digests");
            let insecure = flag(mirror.is_insecure, "+insecure");
            format!(" {}{tags}{digests}{insecure}", mirror.location)
        };
        let rule = |rule: &RegistryRule| {
            let place = rule.location.as_deref().unwrap_or_default();
            let blocked = flag(rule.is_blocked, " blocked");
            let insecure = flag(rule.is_insecure, " insecure");
            let mirrors: String = rule.mirrors.iter().map(mirror).collect();
            format!("{} at {place}{insecure}{blocked}{mirrors}", rule.prefix)
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
insecure = true

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
            "quay.io/a at internal.lab/a insecure one.lab+tags+digests+insecure two.lab:5000/x+digests three.lab+tags",
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
        let nowhere = RegistriesConf {
            file: "/nonexistent/a".into(),
            is_named: true,
            folders: vec!["/nonexistent/b".into()],
        };
        assert_eq!(nowhere.read().unwrap(), []);
    }

    #[test]
    fn files_are_those_that_skopeo_reads() {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join(OWN_FOLDER);
        let system = Path::new("/system");
        let chosen = |named: Option<&str>| {
            let conf = RegistriesConf::choose(named.map(PathBuf::from), Some(own.clone()), system);
            let all = [&conf.file].into_iter().chain(&conf.folders);
            let all = all.map(|path| path.display().to_string());
            let text = all.collect::<Vec<_>>().join(" ");
            text.replace(&own.display().to_string(), "/own")
        };
        let folders = "/system/registries.conf.d /own/registries.conf.d";
        assert_eq!(chosen(None), format!("/system/registries.conf {folders}"));
        assert_eq!(chosen(Some("/named")), format!("/named {folders}"));
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("registries.conf"), "").unwrap();
        assert_eq!(chosen(None), "/own/registries.conf /own/registries.conf.d");
        assert_eq!(chosen(Some("/named")), format!("/named {folders}"));
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
