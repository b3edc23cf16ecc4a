use std::collections::BTreeMap;

use poll::Limits;
use serde_json::Value;

use crate::Problems;

type Set = fn(&mut Limits, u64);

/// Every limit by its key, as it is written in `catalogs.yaml` and as errors name it.
const KEYS: &[(&str, Set)] = &[
    ("manifestBytes", |limits, to| limits.image.manifest_bytes = to),
    ("configBytes", |limits, to| limits.image.config_bytes = to),
    ("layers", |limits, to| limits.image.layers = to),
    ("compressedBytes", |limits, to| limits.image.compressed_bytes = to),
    ("decompressedBytes", |limits, to| limits.image.decompressed_bytes = to),
    ("ratio", |limits, to| limits.image.ratio = to),
    ("ratioFloorBytes", |limits, to| limits.image.ratio_floor_bytes = to),
    ("entries", |limits, to| limits.image.entries = to),
    ("pathBytes", |limits, to| limits.image.path_bytes = to),
    ("headerBytes", |limits, to| limits.image.header_bytes = to),
    ("signatures", |limits, to| limits.image.signatures = to),
    ("signatureBytes", |limits, to| limits.image.signature_bytes = to),
    ("fileBytes", |limits, to| limits.image.file_bytes = to),
    ("treeBytes", |limits, to| limits.image.tree_bytes = to),
    ("linkSteps", |limits, to| limits.image.link_steps = to),
    ("documentBytes", |limits, to| {
        limits.catalog.document.document_bytes = size(to);
    }),
    ("depth", |limits, to| limits.catalog.document.depth = size(to)),
    ("aliasBytes", |limits, to| {
        limits.catalog.document.alias_bytes = size(to);
    }),
    ("documents", |limits, to| limits.catalog.documents = to),
    ("packages", |limits, to| limits.catalog.packages = to),
    ("contentBytes", |limits, to| limits.catalog.content_bytes = to),
    ("nameBytes", |limits, to| limits.catalog.name_bytes = to),
    ("ignoreBytes", |limits, to| limits.catalog.ignore_bytes = to),
];

/// What all texts say together; later ones win.
#[derive(Debug, Default)]
pub(crate) struct Merged(Limits);

impl Merged {
    /// Adds what one text says.
    pub(crate) fn add(&mut self, limits: &BTreeMap<String, Value>, place: &str, problems: &mut Problems) {
        for (key, value) in limits {
            let place = format!("{place}, limits, {key}");
            match (KEYS.iter().find(|(known, _)| known == key), number(value)) {
                (None, _) => problems.add(place, format!("there is no such limit, only {}", names())),
                (_, None) => problems.add(place, format!("{value} is not a number such as 1000 or 8GiB")),
                (Some((_, set)), Some(to)) => set(&mut self.0, to),
            }
        }
    }

    pub(crate) fn finish(self) -> Limits {
        self.0
    }
}

fn names() -> String {
    let names: Vec<_> = KEYS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// A number of at least 1, also as text with a binary unit. With 0 nothing at all could be read.
fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => with_unit(text)?,
        value => value.as_u64()?,
    };
    (number > 0).then_some(number)
}

fn with_unit(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(factor)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Reader;

    fn read(texts: &[&str]) -> Result<Limits, String> {
        let mut reader = Reader::new(Duration::from_secs(600));
        for (at, text) in texts.iter().enumerate() {
            reader.text(&format!("text {at}"), text);
        }
        let config = reader.finish().map_err(|problems| problems.to_string())?;
        assert_eq!(config.images.limits, config.limits.image);
        Ok(config.limits)
    }

    #[test]
    fn each_key_sets_one_limit_of_its_own() {
        assert_eq!(read(&["catalogs: []"]).unwrap(), Limits::default());
        let mut seen = Vec::new();
        for (key, _) in KEYS {
            let limits = read(&[&format!("limits: {{{key}: 12345}}")]).unwrap();
            assert!(limits != Limits::default() && !seen.contains(&limits), "{key}");
            seen.push(limits);
        }
    }

    #[test]
    fn units_are_binary_and_the_last_text_wins() {
        let first = "limits: {compressedBytes: 2GiB, entries: 10, pathBytes: '512'}";
        let limits = read(&[first, "limits:\n  entries: 11\n---\nlimits: {fileBytes: 3 MiB}"]).unwrap();
        let image = limits.image;
        assert_eq!((image.compressed_bytes, image.file_bytes), (2 << 30, 3 << 20));
        assert_eq!((image.entries, image.path_bytes), (11, 512));
    }

    #[test]
    fn what_is_no_limit_is_a_problem() {
        let problems =
            read(&["limits: {entrys: 1, layers: 0, depth: -1, ratio: 2.5, entries: 5TB, fileBytes: 99999999999GiB}"]);
        let problems = problems.unwrap_err();
        for key in ["entrys", "layers", "depth", "ratio", "entries", "fileBytes"] {
            assert!(
                problems.contains(&format!("text 0, limits, {key}: ")),
                "{key}: {problems}"
            );
        }
        assert!(problems.contains("only manifestBytes, configBytes, "), "{problems}");
    }

    #[test]
    fn the_readme_tells_every_default() {
        let readme = include_str!("../../../README.md");
        for (key, set) in KEYS {
            let told = readme.split_once(&format!("`{key}` ")).map(|(_, rest)| rest);
            let value = told.and_then(|rest| rest.split([' ', ',', ';', '\n']).next());
            let value = value
                .and_then(with_unit)
                .unwrap_or_else(|| panic!("the README lacks {key}"));
            let mut limits = Limits::default();
            set(&mut limits, value);
            assert_eq!(limits, Limits::default(), "{key}");
        }
    }
}
