use std::time::Duration;

use model::text::did_you_mean;
use publish::SourceLimits;

use super::{byte_size, section::Section, section::text};
use crate::problems::count;

pub(crate) type SetLimit = fn(&mut SourceLimits, u64);

/// Every limit by its name in `catalogs.yaml`, which errors repeat. Names that end in `Bytes` take
/// sizes with units, the others whole numbers.
const LIMITS: &[(&str, SetLimit)] = &[
    ("manifestBytes", |limits, to| {
        limits.image.manifest_bytes = to;
    }),
    ("configBytes", |limits, to| limits.image.config_bytes = to),
    ("layers", |limits, to| limits.image.layers = to),
    ("compressedBytes", |limits, to| {
        limits.image.compressed_bytes = to;
    }),
    ("decompressedBytes", |limits, to| {
        limits.image.decompressed_bytes = to;
    }),
    ("ratio", |limits, to| limits.image.ratio = to),
    ("ratioFloorBytes", |limits, to| {
        limits.image.ratio_floor_bytes = to;
    }),
    ("entries", |limits, to| limits.image.entries = to),
    ("pathBytes", |limits, to| limits.image.path_bytes = to),
    ("headerBytes", |limits, to| limits.image.header_bytes = to),
    ("signatures", |limits, to| limits.image.signatures = to),
    ("signatureBytes", |limits, to| {
        limits.image.signature_bytes = to;
    }),
    ("fileBytes", |limits, to| limits.image.file_bytes = to),
    ("treeBytes", |limits, to| limits.image.tree_bytes = to),
    ("linkSteps", |limits, to| limits.image.link_steps = to),
    ("documentBytes", |limits, to| {
        limits.catalog.document.document_bytes = to_usize(to);
    }),
    ("depth", |limits, to| {
        limits.catalog.document.depth = to_usize(to);
    }),
    ("aliasBytes", |limits, to| {
        limits.catalog.document.alias_bytes = to_usize(to);
    }),
    ("memoryRatio", |limits, to| {
        limits.catalog.document.memory_ratio = to_usize(to);
    }),
    ("pullSeconds", |limits, to| {
        limits.pull_time = Duration::from_secs(to);
    }),
    ("memoryBytes", |limits, to| {
        limits.memory_bytes = to_usize(to);
    }),
    ("downloadBytes", |limits, to| limits.download_bytes = to),
    ("documents", |limits, to| limits.catalog.documents = to),
    ("packages", |limits, to| limits.catalog.packages = to),
    ("contentBytes", |limits, to| {
        limits.catalog.content_bytes = to;
    }),
    ("nameBytes", |limits, to| limits.catalog.name_bytes = to),
    ("ignoreBytes", |limits, to| limits.catalog.ignore_bytes = to),
    ("ignorePatterns", |limits, to| {
        limits.catalog.ignore_patterns = to_usize(to);
    }),
    ("steps", |limits, to| limits.catalog.steps = to),
];

/// Limits of the process and not of a catalog.
const SHARED: &[&str] = &["memoryBytes", "downloadBytes"];

/// Limit with the value that is configured.
#[derive(Clone)]
pub(crate) struct OwnLimit {
    name: &'static str,
    set: SetLimit,
    to: u64,
}

impl OwnLimit {
    /// Sets the limit.
    pub(crate) fn apply(&self, limits: &mut SourceLimits) {
        (self.set)(limits, self.to);
    }
}

/// Sets a limit of the command line, `NAME=VALUE`.
pub(crate) fn set(limits: &mut SourceLimits, text: &str) -> Result<(), String> {
    let (name, value) = text.split_once('=').ok_or("is not NAME=VALUE")?;
    find(name, value)?.apply(limits);
    Ok(())
}

/// Reads the limits of one catalog.
pub(crate) fn read_own(section: &mut Section) -> Vec<OwnLimit> {
    let limits = read(section);
    for limit in &limits {
        if SHARED.contains(&limit.name) {
            let problem =
                "is shared by all catalogs of the process: set it in the limits of the file";
            section.problems.add(section.place_of(limit.name), problem);
        }
    }
    limits
}

/// Reads all fields of a section as limits.
pub(crate) fn read(section: &mut Section) -> Vec<OwnLimit> {
    let mut limits = Vec::new();
    for (name, value) in section.rest() {
        let limit = find(&name, &text(&value));
        limits.extend(section.problems.ok(section.place_of(&name), limit));
    }
    limits
}

/// Returns the limit of a name with a value.
fn find(name: &str, value: &str) -> Result<OwnLimit, String> {
    let Some(&(name, set)) = LIMITS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = LIMITS.iter().map(|(known, _)| *known).collect();
        let similar = did_you_mean(name, known.iter().copied());
        return Err(format!(
            "there is no such limit{similar}; there are {}",
            known.join(", ")
        ));
    };
    let to = parse(name, value)?;
    Ok(OwnLimit { name, set, to })
}

fn parse(name: &str, text: &str) -> Result<u64, String> {
    if name.ends_with("Bytes") {
        byte_size(text)
    } else {
        // At least 1: with 0 not even an empty image could be read.
        count(text, 1..=u64::MAX)
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::tests::load, *};
    use crate::ConfigLoader;

    fn read(texts: &[&str]) -> Result<SourceLimits, String> {
        let mut loader = ConfigLoader::new(Duration::from_secs(600));
        for (at, text) in texts.iter().enumerate() {
            loader.text(&format!("text {at}"), text);
        }
        let config = loader.finish().map_err(|problems| problems.to_string())?;
        assert_eq!(config.images.limits, config.limits.image);
        Ok(config.limits)
    }

    #[test]
    fn limits_each_name_sets_one_limit() {
        assert_eq!(read(&["catalogs: []"]).unwrap(), SourceLimits::default());
        let mut seen = Vec::new();
        for (name, _) in LIMITS {
            let limits = read(&[&format!("limits: {{{name}: 12345}}")]).unwrap();
            assert!(
                limits != SourceLimits::default() && !seen.contains(&limits),
                "{name}"
            );
            seen.push(limits);
        }
    }

    #[test]
    fn limits_last_text_wins() {
        let first =
            "limits: {compressedBytes: 2GiB, entries: 10, pathBytes: '512', treeBytes: 700MB}";
        let limits = read(&[
            first,
            "limits:\n  entries: 11\n---\nlimits: {fileBytes: 3 MiB}",
        ])
        .unwrap();
        let image = limits.image;
        assert_eq!(
            (image.compressed_bytes, image.file_bytes),
            (2 << 30, 3 << 20)
        );
        assert_eq!((image.entries, image.path_bytes), (11, 512));
        assert_eq!(image.tree_bytes, 700_000_000);
    }

    #[test]
    fn limits_of_a_catalog_win_and_others_are_those_of_all() {
        let text = "catalogs:
- {name: a, source: 'quay.io/a/a:v1', limits: {depth: 7}}
- {name: b, source: 'quay.io/a/b:v1'}
---
limits: {layers: 3}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: c, annotations: {catalog-mirror/limits: '{fileBytes: 1MiB}', other/limits: x}}
spec: {source: {type: Image, image: {ref: 'quay.io/a/c:v1'}}}
";
        let catalogs = load(text).unwrap().catalogs.into_iter();
        let limits: Vec<_> = catalogs.map(|catalog| catalog.limits).collect();
        let mut expected = SourceLimits::default();
        expected.image.layers = 3;
        let mut first = expected.clone();
        first.catalog.document.depth = 7;
        expected.image.file_bytes = 1 << 20;
        assert_eq!(limits, [Some(first), None, Some(expected)]);
    }

    #[test]
    fn limits_bad_values_are_problems() {
        let problems = read(&[
            "limits: {entrys: 1, layers: 0, depth: -1, ratio: 2.5, entries: 5TB, \
                               fileBytes: 99999999999GiB, treeBytes: }",
        ]);
        let problems = problems.unwrap_err();
        for name in "entrys layers depth ratio entries fileBytes treeBytes".split(' ') {
            let place = format!("text 0, limits, {name}: ");
            assert!(problems.contains(&place), "{name}: {problems}");
        }
        assert!(
            problems.contains("(did you mean entries?); there are manifestBytes, configBytes, "),
            "{problems}"
        );
    }

    #[test]
    fn limits_defaults_are_documented() {
        let manual = include_str!("../../../../../functions/catalog-mirror/CONFIGURATION.md");
        for (name, set) in LIMITS {
            let documented = manual
                .split_once(&format!("`{name}` "))
                .map(|(_, rest)| rest);
            let value = documented.and_then(|rest| rest.split([' ', ',', ';', '\n']).next());
            let value = value
                .and_then(|value| parse(name, value).ok())
                .unwrap_or_else(|| panic!("CONFIGURATION.md does not document {name}"));
            let mut limits = SourceLimits::default();
            set(&mut limits, value);
            assert_eq!(limits, SourceLimits::default(), "{name}");
        }
    }
}
