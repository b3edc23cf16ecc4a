use std::{collections::BTreeMap, sync::Arc};

use grpc::olm_v0::api::{CustomSchemasRequest, GroupVersionKind};
use grpc::olm_v0::{
    ApiIndex, BundlePlace, ContentsBuilder, LineRange, PackageRecord, PackageRecorder, meta_struct,
};
use model::Sha256;

use crate::memory;

/// Memory for each byte of lines, and for small ones. An entry of a channel takes most.
const RECORD_RATIO: usize = 40;

const FLOOR: usize = 1 << 20;

/// Size of the chunks in which lines are recorded a second time.
const CHUNK: usize = 7;

/// Memory for the compressed contents of a package.
const CONTENTS_MAX: usize = 1 << 20;

/// Records the lines of a package and asks for everything: the record does not depend on the
/// chunks, memory is bounded, and every answer is a message or an error.
///
/// # Panics
/// If not.
pub(crate) fn records(lines: &[u8]) {
    let about = format!(
        "{:?}",
        String::from_utf8_lossy(&lines[..lines.len().min(1000)])
    );
    let whole = memory::within(RECORD_RATIO * lines.len() + FLOOR, &about, || {
        record(lines, usize::MAX)
    });
    assert_eq!(whole, record(lines, CHUNK), "{about}");
    let Ok(record) = whole else { return };
    let mut index = ApiIndex::default();
    index.insert(Arc::new(record));
    ask(&index, lines);
}

fn record(lines: &[u8], chunk: usize) -> Result<PackageRecord, String> {
    let mut recorder = PackageRecorder::new("p");
    lines
        .chunks(chunk.min(lines.len().max(1)))
        .for_each(|chunk| recorder.push(chunk));
    recorder.finish(Sha256::of(b""))
}

/// Asks for everything.
fn ask(index: &ApiIndex, lines: &[u8]) {
    let line = |range: &LineRange| {
        let [start, end] =
            [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        lines.get(start..end.min(lines.len())).unwrap_or_default()
    };
    let complete = |place: BundlePlace<'_>| {
        let record = place.package;
        let package_line = line(&record.package_line.clone().unwrap_or_default());
        let mut builder = ContentsBuilder::new(Arc::clone(record), package_line, CONTENTS_MAX)?;
        for (at, bundle) in record.bundles.iter().enumerate() {
            builder.add(at, line(&bundle.line));
        }
        let message = place.message(true);
        builder
            .finish()?
            .complete(record, place.entry.bundle, &message)
    };
    for package in index.list_packages() {
        drop(index.get_package(&package));
        let custom = CustomSchemasRequest {
            schema: "custom.v1".to_owned(),
            package_name: package,
        };
        for range in index.list_custom_schemas(&custom).unwrap_or_default() {
            line(range)
                .split(|byte| *byte == b'\n')
                .for_each(|line| drop(meta_struct(line)));
        }
    }
    index.entries().for_each(|place| drop(complete(place)));
    let api = GroupVersionKind::default();
    index
        .get_channel_entries_that_replace("")
        .into_iter()
        .flatten()
        .for_each(drop);
    index
        .get_channel_entries_that_provide(&api)
        .into_iter()
        .flatten()
        .for_each(drop);
    let latest = index
        .get_latest_channel_entries_that_provide(&api)
        .into_iter();
    latest.flatten().for_each(drop);
    drop(index.get_default_bundle_that_provides(&api));
}

/// Returns the lines of each package of the crafted catalog.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut packages = BTreeMap::<String, Vec<u8>>::new();
    let catalog = include_bytes!("../../../shared/serving/grpc/tests/recorded/crafted.jsonl");
    for line in catalog.split_inclusive(|byte| *byte == b'\n') {
        let meta: serde_json::Value = serde_json::from_slice(line).expect("a line is JSON");
        let name = meta["package"]
            .as_str()
            .or(meta["name"].as_str())
            .unwrap_or_default();
        packages
            .entry(name.to_owned())
            .or_default()
            .extend_from_slice(line);
    }
    packages.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::records;

    /// Each row has a part between bars, with its number for `%` and the one before for `^`.
    #[test]
    fn records_of_many_small_values_and_names_take_bounded_memory() {
        for row in [
            r#"{"properties":[|{},|{}],"schema":"olm.bundle"}"#,
            r#"{"properties":[|{"type":"olm.gvk","value":{}},|{}],"schema":"olm.bundle"}"#,
            r#"{"entries":[|{"name":"a","skips":[]},|{}],"schema":"olm.channel"}"#,
            r#"{"entries":[{"skips":[|"",|""]}],"schema":"olm.channel"}"#,
            r#"{"entries":[|{"message":"m"},|{}],"schema":"olm.deprecations"}"#,
            "|{\"schema\":\"a\"}\n{\"schema\":\"b\"}\n|",
            r#"{"entries":[{"name":"0"}|,{"name":"%","replaces":"^"}|],"name":"c","schema":"olm.channel"}"#,
            r#"{"entries":[{"name":"a","skips":["0"|,"%"|]}],"schema":"olm.channel"}"#,
            "|{\"name\":\"%\",\"schema\":\"olm.bundle\"}\n|",
            "|{\"schema\":\"%\"}\n|",
        ] {
            let [start, part, end] = row.split('|').collect::<Vec<_>>()[..] else {
                panic!("{row}");
            };
            let numbered = |at: usize| {
                part.replace('%', &at.to_string())
                    .replace('^', &(at - 1).to_string())
            };
            let parts: String = (1..=50_000).map(numbered).collect();
            records([start, &parts, end].concat().as_bytes());
        }
    }
}
