use grpc::AnswerError;
use grpc::olm_v0::api::GetBundleRequest;
use grpc::olm_v0::{ApiIndex, BundlePlace, ContentsBuilder, LineRange, PackageContents};
use prost::Message;
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixture::SentBundle;
use crate::recorder::record;

/// Returns the message of a bundle with its manifests, as they are in the lines of the Shard.
pub(crate) fn complete(lines: &[u8], place: BundlePlace<'_>) -> Result<SentBundle, AnswerError> {
    let bytes = contents(lines, place, 1 << 30)?.complete(
        place.package,
        place.entry.bundle,
        &place.message(false),
    )?;
    Ok(SentBundle::decode(bytes).expect("a message"))
}

/// Makes the contents of the package of a bundle.
fn contents(
    lines: &[u8],
    place: BundlePlace<'_>,
    limit: usize,
) -> Result<PackageContents, AnswerError> {
    let record = place.package;
    let line = |range: &LineRange| &lines[range.start as usize..range.end as usize];
    let package_line = record.package_line.as_ref().map_or(&b""[..], line);
    let mut builder = ContentsBuilder::new(record.clone(), package_line, limit)?;
    for (at, bundle) in record.bundles.iter().enumerate() {
        builder.add(at, line(&bundle.line));
    }
    builder.finish()
}

/// Returns the lines of a package with one bundle for each description, and its index.
fn package(descriptions: &[String]) -> (Vec<u8>, ApiIndex) {
    let names: Vec<String> = (0..descriptions.len()).map(|at| format!("b{at}")).collect();
    let replaced = |at: usize| at.checked_sub(1).map(|before| &names[before]);
    let entry = |(at, name)| json!({ "name": name, "replaces": replaced(at) });
    let entries: Vec<Value> = names.iter().enumerate().map(entry).collect();
    let icon = json!({ "base64data": "aWNvbg==", "mediatype": "image/svg+xml" });
    let mut metas = vec![
        json!({ "schema": "olm.package", "name": "p", "defaultChannel": "c", "icon": icon }),
        json!({ "schema": "olm.channel", "package": "p", "name": "c", "entries": entries }),
    ];
    for (at, description) in descriptions.iter().enumerate() {
        let version = json!({ "packageName": "p", "version": format!("1.0.{at}") });
        metas.push(
            json!({ "schema": "olm.bundle", "package": "p", "name": names[at], "image": "i", "properties": [
                { "type": "olm.package", "value": version },
                { "type": "olm.csv.metadata", "value": { "description": description, "displayName": "P" } },
            ]}),
        );
    }
    let lines: String = metas.iter().map(|meta| format!("{meta}\n")).collect();
    let mut index = ApiIndex::default();
    index.insert(record("p", &lines).unwrap().into());
    (lines.into_bytes(), index)
}

fn bundle(index: &ApiIndex, at: usize) -> BundlePlace<'_> {
    let request = GetBundleRequest {
        pkg_name: "p".to_owned(),
        channel_name: "c".to_owned(),
        csv_name: format!("b{at}"),
    };
    index.get_bundle(&request).unwrap()
}

/// Returns a text that does not compress well.
fn text(length: usize) -> String {
    let words = (0_u64..).map(|at| format!("{:x} ", at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    words
        .flat_map(String::into_bytes)
        .take(length)
        .map(char::from)
        .collect()
}

#[rstest]
#[case::short(&[0, 100, 200])]
#[case::long(&[300 << 10, 10, 700 << 10])]
#[case::similar(&[100 << 10, 90 << 10, 0, 300 << 10, 10])]
fn content_is_complete_at_any_length(#[case] lengths: &[usize]) {
    let descriptions: Vec<String> = lengths.iter().map(|length| text(*length)).collect();
    let (lines, index) = package(&descriptions);
    for (at, description) in descriptions.iter().enumerate() {
        let place = bundle(&index, at);
        let bundle = complete(&lines, place).unwrap();
        let csv: Value = serde_json::from_str(&bundle.csv_json).unwrap();
        // An empty one is left out, as Go's `omitempty` says.
        let expected = (!description.is_empty()).then_some(description);
        assert_eq!(csv["spec"]["description"], json!(expected));
        assert_eq!(csv["spec"]["icon"][0]["base64data"], "aWNvbg==");
        assert_eq!(csv["spec"]["version"], format!("1.0.{at}"));
        assert_eq!(bundle.object, [bundle.csv_json]);
        assert_eq!(bundle.bundle_path, "i");
    }
}

#[test]
fn contents_above_their_limit_are_refused() {
    let (lines, index) = package(&[text(100 << 10), text(100 << 10)]);
    let made = |limit| contents(&lines, bundle(&index, 0), limit);
    let memory = made(usize::MAX).unwrap().memory;
    assert!(memory < lines.len(), "{memory} bytes for {}", lines.len());
    let (package, limit) = ("p".to_owned(), memory - 1);
    assert_eq!(
        made(limit).unwrap_err(),
        AnswerError::ContentsTooLarge { package, limit }
    );
}

#[test]
fn bundles_that_resemble_each_other_take_little_more_memory_than_one() {
    let memory = |count| {
        let (lines, index) = package(&vec![text(60 << 10); count]);
        contents(&lines, bundle(&index, 0), usize::MAX)
            .unwrap()
            .memory
    };
    let (one, ten) = (memory(1), memory(10));
    assert!(ten < one * 3, "{ten} bytes, {one} for one");
}

#[test]
fn bundle_whose_line_did_not_come_is_an_error() {
    let (_, index) = package(&[text(10)]);
    let place = bundle(&index, 0);
    let builder = ContentsBuilder::new(place.package.clone(), b"{}", 1 << 20).unwrap();
    let completed = builder
        .finish()
        .unwrap()
        .complete(place.package, 0, &place.message(false));
    assert_eq!(
        completed.unwrap_err().to_string(),
        "bundle \"b0\": its line is missing"
    );
}
