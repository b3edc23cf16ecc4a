//! Limits: a value equal to the limit passes, one more is an error, and deep or repeated input does
//! no harm.

use std::io::Read;

use fbc::{Chunks, FbcErrorKind, FbcLimits};
use work::Budget;

use crate::common::{lines, lines_with};

type Set = fn(&mut FbcLimits, usize);

/// Returns the name and value of the exceeded limit and the number of the document, or `None` if
/// the file is read.
fn kind(file: &[u8], set: Set, limit: usize) -> Option<(&'static str, usize, usize)> {
    let mut limits = FbcLimits::default();
    set(&mut limits, limit);
    let chunks = Chunks::new(file, limits, 1);
    let error = chunks
        .map(|chunk| chunk?.metas(&limits, &mut |_| {}))
        .find_map(Result::err)?;
    match &error.kind {
        FbcErrorKind::Limit { name, limit } => Some((name, *limit, error.document)),
        other => panic!("{other}"),
    }
}

#[test]
fn limit_accepts_its_exact_value_and_names_itself_when_exceeded() {
    let document_bytes: Set = |limits, to| limits.document_bytes = to;
    let depth: Set = |limits, to| limits.depth = to;
    let alias_bytes: Set = |limits, to| limits.alias_bytes = to;
    let rows: &[(&str, &str, usize, Set)] = &[
        (
            "documentBytes",
            "{\"v\":\"0123456789\"}",
            18,
            document_bytes,
        ),
        ("documentBytes", "v: '0123456789ab'\n", 18, document_bytes),
        ("depth", "{\"v\":[[{}]]}", 4, depth),
        ("depth", "v: [[{}]]\n", 4, depth),
        ("depth", "v:\n- - a: 1\n", 4, depth),
        // Only the value of the alias counts. The key before it stands in the document.
        (
            "aliasBytes",
            "a: &a \"0123456789\"\nb: *a\n",
            12,
            alias_bytes,
        ),
    ];
    for (name, file, limit, set) in rows {
        assert_eq!(kind(file.as_bytes(), *set, *limit), None, "{name} {file}");
        let below = limit - 1;
        assert_eq!(
            kind(file.as_bytes(), *set, below),
            Some((*name, below, 1)),
            "{file}"
        );
        // The document is counted where it is not the first.
        let first = if file.starts_with('{') {
            "{}\n"
        } else {
            "v: 1\n---\n"
        };
        let second = format!("{first}{file}");
        let (_, _, document) = kind(second.as_bytes(), *set, below).unwrap();
        assert_eq!(document, 2, "{file}");
    }
}

#[test]
fn depth_limit_is_that_of_go() {
    let json = |depth| format!("{{\"v\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let flow = |depth| format!("v: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    for nested in [json as fn(usize) -> String, flow] {
        assert!(lines(nested(9_999).as_bytes()).is_ok());
        let error = lines(nested(10_000).as_bytes()).unwrap_err();
        assert!(error.contains("the limit depth of 10000"), "{error}");
        assert!(lines(nested(1_000_000).as_bytes()).is_err());
    }
}

#[test]
fn alias_limit_refuses_exponential_aliases() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let error = lines(bomb.as_bytes()).unwrap_err();
    assert!(error.contains("excessive aliasing"), "{error}");
}

#[test]
fn unsorted_nested_objects_are_sorted_in_linear_time() {
    let mut json = "{\"b\":".repeat(9_999) + "\"" + &"x".repeat(1 << 20) + "\"";
    json += &",\"a\":1}".repeat(9_999);
    let line = lines(json.as_bytes()).unwrap();
    assert!(line.starts_with("{\"a\":1,\"b\":{\"a\":1,"));
    assert_eq!(line.len(), json.len() + 1);
}

#[test]
fn document_that_never_fits_into_memory_is_refused_before_reading_it_whole() {
    let limits = FbcLimits {
        memory_bytes: 80_000,
        ..FbcLimits::default()
    };
    for start in ["{\"v\":\"", "v: \""] {
        let file = |size: usize| format!("{start}{}", "x".repeat(size));
        let error = lines_with(file(1_000_000).as_bytes(), limits, 1000).unwrap_err();
        assert!(error.contains("the limit memoryBytes of 80000"), "{error}");
        let whole = format!("{{\"v\":\"{}\"}}", "x".repeat(10_000 - 8));
        assert!(
            lines_with(whole.as_bytes(), limits, 1000).is_ok(),
            "exactly an eighth passes"
        );
    }
}

#[test]
fn memory_ratio_admits_what_a_lower_one_refuses() {
    let file = format!("v: {{{}}}\n", "n,".repeat(1 << 18));
    let read = |memory_ratio| {
        let limits = FbcLimits {
            memory_ratio,
            ..FbcLimits::default()
        };
        lines_with(file.as_bytes(), limits, 1 << 20)
    };
    let error = read(8).unwrap_err();
    assert!(error.contains("the limit memoryRatio of 8"), "{error}");
    assert_eq!(read(64).as_deref(), Ok("{\"v\":{\"false\":null}}\n"));
}

#[test]
fn budget_that_is_stopped_ends_the_parsing() {
    let budget = Budget::default();
    let file = b"v: [1, 2]\n";
    let chunks = || Chunks::new(&file[..], FbcLimits::default(), 1).within(budget.clone());
    let chunk = chunks().next().unwrap().unwrap();
    assert!(chunk.metas(&FbcLimits::default(), &mut |_| {}).is_ok());
    budget.stop();
    let error = chunk.metas(&FbcLimits::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(error.kind, FbcErrorKind::Stopped), "{error:?}");
}

#[test]
fn document_that_is_too_large_is_read_just_beyond_its_limit() {
    let limits = FbcLimits {
        document_bytes: 100_000,
        ..FbcLimits::default()
    };
    for start in [&b"{\"v\":\""[..], b"v: "] {
        let mut rest = std::io::repeat(b'a').take(1 << 20);
        let mut chunks = Chunks::new(start.chain(&mut rest), limits, 4096);
        let error = chunks.next().unwrap().unwrap_err();
        assert!(
            error
                .kind
                .to_string()
                .contains("the limit documentBytes of 100000"),
            "{error:?}"
        );
        drop(chunks);
        let read = start.len() as u64 + (1 << 20) - rest.limit();
        assert!((100_001..=100_005).contains(&read), "{read}");
    }
}

#[test]
fn value_longer_than_a_chunk_is_yaml_only_if_its_document_ends_there() {
    let json = format!("{{\"v\":[{}]}}", "{},".repeat(3000) + "1");
    // Flow mappings of YAML may have a comma at the end.
    let yaml = json.replace("]}", "],}");
    let space = "\n".repeat(9000);
    for (count, file) in [
        (Some(1), yaml.clone()),
        (Some(1), format!("{yaml}{space}")),
        (Some(2), format!("{yaml}{space}---\n{json}")),
        (Some(2), format!("{json}{space}{json}")),
        (Some(2), format!("{json}{space}a: 1\n")),
        (None, format!("{yaml}{space}{yaml}")),
        (None, format!("{yaml}{space}{json}")),
        (None, format!("{yaml}{space}a: 1\n")),
    ] {
        for target in [0, usize::MAX] {
            let lines = lines_with(file.as_bytes(), FbcLimits::default(), target);
            let found = lines.ok().map(|lines| lines.lines().count());
            assert_eq!(found, count, "{} bytes, chunks of {target}", file.len());
        }
    }
}
