//! Cost of one byte of the documents and headers of a registry: memory and allocations grow with
//! the size, not faster.
//!
//! Counts are compared, never times. The largest size is the limit, by default 4 MiB for a manifest
//! or an index and 8 MiB for a config; an eighth of it without optimisation, which CI runs. hyper
//! refuses an answer whose headers have more than 408 KiB.

use allocation_counter::AllocationInfo;
use fetch::next_link;
use oci::{
    Digest, ImageContent, ImageDocument, ImageLimits, TargetPlatform, choose_platform,
    content_root, parse_manifest,
};
use reqwest::header::{HeaderMap, LINK};
use testkit::grew_more_than_fourfold;

/// Number of allocations below which two are not compared.
const FLOOR_COUNT: u64 = 200;

/// Texts of one kind and any size: its name, the frame with `…` where the parts are, and a part
/// with `#` for its number.
type Family<'a> = (&'a str, &'a str, &'a str);

fn text((_, frame, part): Family<'_>, size: usize) -> String {
    let (start, end) = frame
        .split_once('…')
        .expect("the frame has a place for the parts");
    let mut text = start.to_owned();
    for at in 0.. {
        let needs_comma = at > 0 && part.starts_with(['"', '{', '[']);
        let comma = if needs_comma { "," } else { "" };
        let part = format!("{comma}{}", part.replace('#', &at.to_string()));
        if text.len() + part.len() + end.len() > size {
            break;
        }
        text.push_str(&part);
    }
    text + end
}

/// Largest peak of memory for each byte of a document: a descriptor of 38 bytes is one of 224 bytes
/// in memory, and a list that grows is there twice for a moment.
const PEAK: u64 = 20;

/// Reader of a text, and what its cost is compared with.
struct Reader {
    /// Largest size, in bytes.
    most: usize,
    /// Largest peak of memory for each byte.
    peak: u64,
    /// Returns true if the text is accepted.
    read: fn(&str) -> bool,
}

impl Reader {
    /// Measures texts of three sizes, each four times the one before. Costs below the size of the
    /// text are not compared.
    fn measure(&self, accepted: &[Family<'_>], refused: &[Family<'_>]) {
        let most = self.most / if cfg!(debug_assertions) { 8 } else { 1 };
        let accepted = accepted.iter().map(|family| (family, true));
        for (family, is_accepted) in accepted.chain(refused.iter().map(|family| (family, false))) {
            let mut before: Option<AllocationInfo> = None;
            for size in [most / 16, most / 4, most] {
                let text = text(*family, size);
                let mut accepted = false;
                let cost = allocation_counter::measure(|| accepted = (self.read)(&text));
                let place = format!(
                    "{}, {} bytes, accepted: {accepted}: {cost:?}",
                    family.0,
                    text.len()
                );
                let floor = size as u64;
                let grew = before.is_some_and(|before| {
                    grew_more_than_fourfold(before.bytes_max, cost.bytes_max, floor / 4)
                        || grew_more_than_fourfold(before.bytes_total, cost.bytes_total, floor / 4)
                        || grew_more_than_fourfold(
                            before.count_total,
                            cost.count_total,
                            FLOOR_COUNT,
                        )
                });
                let is_right =
                    !grew && accepted == is_accepted && cost.bytes_max <= self.peak * floor;
                assert!(is_right, "{place} after {before:?}");
                before = Some(cost);
            }
        }
    }
}

#[test]
fn cost_of_manifest_is_linear_in_its_bytes() {
    const IMAGE: &str =
        r#"{"schemaVersion":2,"config":{"mediaType":"","digest":"","size":0},"layers":[…]}"#;
    const CONFIG: &str = concat!(
        r#"{"schemaVersion":2,"layers":[],"config":{"mediaType":"","size":0,"#,
        r#""digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","annotations":{…}}}"#
    );
    const INDEX: &str = r#"{"schemaVersion":2,"manifests":[…]}"#;
    const EMPTY: &str = r#"{"schemaVersion":2,"manifests":[]…}"#;
    const VALUE: &str = r#"{"schemaVersion":2,"manifests":[],"x":…}"#;
    const IGNORED: &str = r#"{"schemaVersion":2,"manifests":[],"x":[…]}"#;
    const NOTES: &str = r#"{"schemaVersion":2,"manifests":[],"annotations":{…}}"#;
    const TYPE: &str = r#"{"schemaVersion":2,"artifactType":"…"}"#;
    const DESCRIPTOR: &str = r#"{"mediaType":"","digest":"","size":0}"#;
    let with_urls = DESCRIPTOR.replace('}', r#","urls":["a","b","c","d","e","f","g","h"]}"#);
    let with_platform = DESCRIPTOR.replace('}', r##","platform":{"os":"o#","architecture":"a"}}"##);
    // As many inside each other as `serde_json` reads below two others.
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(124), close.repeat(124));
    let accepted = [
        ("annotations of a config", CONFIG, r##""#":"""##),
        ("many manifests", INDEX, DESCRIPTOR),
        ("manifests of other platforms", INDEX, &with_platform),
        ("annotations", NOTES, r##""#":"v""##),
        ("deep lists", IGNORED, &deep("[", "]")),
        (
            "deep objects",
            IGNORED,
            &deep(r#"{"a":"#, "}").replace(":}", ":0}"),
        ),
        ("empty lists", IGNORED, "[]"),
        ("fields of one name", EMPTY, r#","x":0"#),
        ("long number", &VALUE.replace('…', "1…"), "0"),
        ("long exponent", &VALUE.replace('…', "1e-…"), "9"),
        ("white space", EMPTY, " \n\t"),
    ];
    let refused = [
        ("many layers", IMAGE, DESCRIPTOR),
        ("layers with URLs", IMAGE, &with_urls),
        ("too deep", VALUE, " ["),
        ("types of one name", EMPTY, r#","mediaType":"""#),
        ("long type", TYPE, "x"),
        ("long type of escapes", TYPE, r"\u001b"),
    ];
    let reader = Reader {
        most: ImageLimits::default().manifest_bytes as usize,
        peak: PEAK,
        read: |text| {
            let digest = Digest::of(b"");
            let parsed = parse_manifest(&digest, text.as_bytes(), &ImageLimits::default());
            if let Ok(ImageDocument::Index(index)) = &parsed {
                // None of them has an image for this platform, so that all names of platforms are
                // listed.
                let _ = choose_platform(index, &digest, &TargetPlatform::default());
            }
            parsed.is_ok()
        },
    };
    reader.measure(&accepted, &refused);
}

#[test]
fn cost_of_config_is_linear_in_its_bytes() {
    const ROOT: &str =
        r#"{"config":{"Labels":{"operators.operatorframework.io.index.configs.v1":"…"}}}"#;
    let labels = ROOT.replace("…\"", "/configs\"…");
    let history = ROOT.replace("…\"}}", r#"/"}},"history":[…]"#);
    let accepted = [
        ("labels", &*labels, r##","#":"v""##),
        ("labels of one name", &labels, r#","a":"v""#),
        ("long label", &labels.replace('…', r#","a":"x…""#), r"\n"),
        ("history", &history, r#"{"created_by":"x"}"#),
        ("empty history", &history, "{}"),
    ];
    let refused = [
        ("long root", ROOT, "a/"),
        ("sections of one name", r#"{"x":0…}"#, r#","config":{}"#),
    ];
    let reader = Reader {
        most: ImageLimits::default().config_bytes as usize,
        peak: PEAK,
        read: |text| {
            let (digest, limits) = (Digest::of(b""), ImageLimits::default());
            content_root(ImageContent::Catalog, &digest, text.as_bytes(), &limits).is_ok()
        },
    };
    reader.measure(&accepted, &refused);
}

#[test]
fn cost_of_link_is_linear_in_its_bytes() {
    let reader = Reader {
        // hyper's buffer for the headers of an answer.
        most: 408 << 10,
        peak: 4,
        read: |text| {
            next_link(&HeaderMap::from_iter([(
                LINK,
                text.parse().expect("it is text"),
            )]))
            .is_some()
        },
    };
    let refused = [
        ("last links", "…", "<a>; rel=prev,"),
        ("open quotes", "…", "<a>;rel=\""),
        ("open links", "…", "<"),
    ];
    reader.measure(&[("parameters", "<a>…;rel=next", ";")], &refused);
}
