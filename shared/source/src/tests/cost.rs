//! Cost of one byte of the documents and headers of a registry: memory and allocations grow with the size, not faster.
//!
//! Counts are compared, never times. The largest size is the limit, by default 4 MiB for a manifest or an index and 8 MiB
//! for a config; an eighth of it without optimisation, which CI runs. hyper refuses an answer whose headers have more than
//! 408 KiB.

use allocation_counter::AllocationInfo;
use fetch::next_link;
use oci::{
    Digest, ImageContent, ImageDocument, ImageLimits, TargetPlatform, choose_platform, content_root, parse_manifest,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LINK};
use testkit::grew_more_than_fourfold;

/// Number of allocations below which two are not compared.
const FLOOR_COUNT: u64 = 200;

const DESCRIPTOR: &str = r#"{"mediaType":"","digest":"","size":0}"#;

/// Texts of one kind and any size.
struct Family {
    name: &'static str,
    start: &'static str,
    part: fn(usize) -> String,
    end: &'static str,
    /// True if they are refused.
    refused: bool,
}

impl Family {
    fn text(&self, size: usize) -> String {
        let mut text = String::with_capacity(size);
        text.push_str(self.start);
        for at in 0.. {
            let part = (self.part)(at);
            let comma = if at > 0 && part.starts_with(['"', '{', '[']) {
                ","
            } else {
                ""
            };
            if text.len() + comma.len() + part.len() + self.end.len() > size {
                break;
            }
            text.push_str(comma);
            text.push_str(&part);
        }
        text.push_str(self.end);
        text
    }
}

const fn family(name: &'static str, start: &'static str, part: fn(usize) -> String, end: &'static str) -> Family {
    Family {
        name,
        start,
        part,
        end,
        refused: false,
    }
}

const fn refused(name: &'static str, start: &'static str, part: fn(usize) -> String, end: &'static str) -> Family {
    Family {
        refused: true,
        ..family(name, start, part, end)
    }
}

/// Largest peak of memory for each byte of a document: a descriptor of 38 bytes is one of 224 bytes in memory, and a list that
/// grows is there twice for a moment.
const PEAK: u64 = 20;

/// Measures texts of three sizes, each four times the one before, the last one of `most` bytes. Costs below the size of the
/// text are not compared.
fn measure(families: &[Family], most: usize, peak: u64, read: fn(&str) -> bool) {
    let most = if cfg!(debug_assertions) { most / 8 } else { most };
    let mut wrong = Vec::new();
    for family in families {
        let mut before: Option<AllocationInfo> = None;
        for size in [most / 16, most / 4, most] {
            let text = family.text(size);
            let mut accepted = false;
            let cost = allocation_counter::measure(|| accepted = read(&text));
            let place = format!("{}, {} bytes", family.name, text.len());
            println!(
                "{place}: {} at most, {} in all, {}",
                cost.bytes_max, cost.bytes_total, cost.count_total
            );
            let floor = size as u64;
            if accepted == family.refused || cost.bytes_max > peak * floor {
                wrong.push(format!("{place}, accepted: {accepted}: {cost:?}"));
            }
            if let Some(before) = before.filter(|before| {
                grew_more_than_fourfold(before.bytes_max, cost.bytes_max, floor / 4)
                    || grew_more_than_fourfold(before.bytes_total, cost.bytes_total, floor / 4)
                    || grew_more_than_fourfold(before.count_total, cost.count_total, FLOOR_COUNT)
            }) {
                wrong.push(format!("{place}: {cost:?} after {before:?}"));
            }
            before = Some(cost);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn cost_of_manifest_is_linear_in_its_bytes() {
    const IMAGE: &str = r#"{"schemaVersion":2,"config":{"mediaType":"","digest":"","size":0},"layers":["#;
    const CONFIG: &str = concat!(
        r#"{"schemaVersion":2,"layers":[],"config":{"mediaType":"","size":0,"#,
        r#""digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","annotations":{"#
    );
    const INDEX: &str = r#"{"schemaVersion":2,"manifests":["#;
    const PLATFORM: &str = concat!(
        r#"{"schemaVersion":2,"manifests":[{"mediaType":"","digest":"","size":0,"#,
        r#""platform":{"os":"a","architecture":"b","features":["#
    );
    const EMPTY: &str = r#"{"schemaVersion":2,"manifests":[]"#;
    const IGNORED: &str = r#"{"schemaVersion":2,"manifests":[],"x":["#;
    const NOTES: &str = r#"{"schemaVersion":2,"manifests":[],"annotations":{"#;
    const TYPE: &str = r#"{"schemaVersion":2,"artifactType":""#;
    let families = [
        refused("many layers", IMAGE, |_| DESCRIPTOR.into(), "]}"),
        refused(
            "layers with URLs",
            IMAGE,
            |_| DESCRIPTOR.replace('}', r#","urls":["a","b","c","d","e","f","g","h"]}"#),
            "]}",
        ),
        family("annotations of a config", CONFIG, |at| format!(r#""{at}":"""#), "}}}"),
        family("many manifests", INDEX, |_| DESCRIPTOR.into(), "]}"),
        family(
            "manifests of other platforms",
            INDEX,
            |at| DESCRIPTOR.replace('}', &format!(r#","platform":{{"os":"o{at}","architecture":"a"}}}}"#)),
            "]}",
        ),
        family("features of a platform", PLATFORM, |_| r#""""#.into(), "]}}]}"),
        family("annotations", NOTES, |at| format!(r#""{at}":"v""#), "}}"),
        family("annotations of one name", NOTES, |_| r#""a":"v""#.into(), "}}"),
        family("deep lists", IGNORED, |_| nested("[", "]"), "]}"),
        family(
            "deep objects",
            IGNORED,
            |_| nested(r#"{"a":"#, "}").replace(":}", ":0}"),
            "]}",
        ),
        refused(
            "too deep",
            r#"{"schemaVersion":2,"manifests":[],"x":"#,
            |_| " [".into(),
            "",
        ),
        family("empty lists", IGNORED, |_| "[]".into(), "]}"),
        family("fields of one name", EMPTY, |_| r#","x":0"#.into(), "}"),
        refused("types of one name", EMPTY, |_| r#","mediaType":"""#.into(), "}"),
        refused("long type", TYPE, |_| "x".into(), "\"}"),
        refused("long type of escapes", TYPE, |_| "\\u001b".into(), "\"}"),
        family(
            "long number",
            r#"{"schemaVersion":2,"manifests":[],"x":1"#,
            |_| "0".into(),
            "}",
        ),
        family(
            "long exponent",
            r#"{"schemaVersion":2,"manifests":[],"x":1e-"#,
            |_| "9".into(),
            "}",
        ),
        family("white space", EMPTY, |_| " \n\t".into(), "}"),
    ];
    let limits = ImageLimits::default();
    measure(&families, limits.manifest_bytes as usize, PEAK, |text| {
        let digest = Digest::of(b"");
        let wanted = TargetPlatform::default();
        match parse_manifest(&digest, text.as_bytes(), &ImageLimits::default()) {
            Ok(ImageDocument::Index(index)) => {
                // None of them has an image for this platform, so that all names of platforms are listed.
                let _ = choose_platform(&index, &digest, &wanted);
                true
            }
            Ok(ImageDocument::Image(_)) => true,
            Err(_) => false,
        }
    });
}

#[test]
fn cost_of_config_is_linear_in_its_bytes() {
    const LABELS: &str = r#"{"config":{"Labels":{"operators.operatorframework.io.index.configs.v1":"/configs""#;
    const HISTORY: &str = r#"{"config":{"Labels":{"operators.operatorframework.io.index.configs.v1":"/"}},"history":["#;
    let families = [
        family("labels", LABELS, |at| format!(r#","{at}":"v""#), "}}}"),
        family("labels of one name", LABELS, |_| r#","a":"v""#.into(), "}}}"),
        family(
            "long label",
            LABELS,
            |at| if at == 0 { r#","a":"x"#.into() } else { "\\n".into() },
            "\"}}}",
        ),
        refused(
            "long root",
            r#"{"config":{"Labels":{"operators.operatorframework.io.index.configs.v1":""#,
            |_| "a/".into(),
            "\"}}}",
        ),
        family(
            "history",
            HISTORY,
            |_| r#"{"created_by":"x","empty_layer":true}"#.into(),
            "]}",
        ),
        family("empty history", HISTORY, |_| "{}".into(), "]}"),
        refused("sections of one name", r#"{"x":0"#, |_| r#","config":{}"#.into(), "}"),
    ];
    measure(&families, ImageLimits::default().config_bytes as usize, PEAK, |text| {
        content_root(
            ImageContent::Catalog,
            &Digest::of(b""),
            text.as_bytes(),
            &ImageLimits::default(),
        )
        .is_ok()
    });
}

/// Largest size of the headers of an answer, in bytes (hyper's buffer).
const HEAD_BYTES: usize = 408 << 10;

#[test]
fn cost_of_link_is_linear_in_its_bytes() {
    let families = [
        refused("last links", "", |_| "<a>; rel=prev,".into(), ""),
        family("parameters", "<a>", |_| ";".into(), ";rel=next"),
        refused("open quotes", "", |_| "<a>;rel=\"".into(), ""),
        refused("open links", "", |_| "<".into(), ""),
    ];
    measure(&families, HEAD_BYTES, LINK_PEAK, |text| {
        next_link(&headers(LINK, text)).is_some()
    });
}

/// Largest peak of memory for each byte of a `Link`.
const LINK_PEAK: u64 = 4;

fn headers(name: HeaderName, text: &str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_str(text).expect("it is text"))])
}

/// Returns as many containers inside each other as `serde_json` reads below two others.
fn nested(open: &str, close: &str) -> String {
    format!("{}{}", open.repeat(124), close.repeat(124))
}
