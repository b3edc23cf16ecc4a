//! Exactly the limit passes, one more is an error; deep and repeated input does no harm.

mod common;

use common::{lines, lines_with};
use fbc::{Chunks, Limits, Problem};

type Set = fn(&mut Limits, usize);

/// What reading a file with a limit ends with, if not with lines.
fn problem(file: &[u8], set: Set, limit: usize) -> Option<(&'static str, usize, usize)> {
    let mut limits = Limits::default();
    set(&mut limits, limit);
    let chunks = Chunks::new(file, limits, 1);
    let error = chunks
        .map(|chunk| chunk?.metas(&limits, &mut |_| {}))
        .find_map(Result::err)?;
    match error.problem() {
        Problem::Limit { name, limit } => Some((name, *limit, error.document())),
        other => panic!("{other}"),
    }
}

#[test]
fn exactly_the_limit_passes_and_one_more_is_an_error_that_names_it() {
    let document_bytes: Set = |limits, to| limits.document_bytes = to;
    let depth: Set = |limits, to| limits.depth = to;
    let alias_bytes: Set = |limits, to| limits.alias_bytes = to;
    let rows: &[(&str, &str, usize, Set)] = &[
        ("documentBytes", "{\"v\":\"0123456789\"}", 18, document_bytes),
        ("documentBytes", "v: '0123456789ab'\n", 18, document_bytes),
        ("depth", "{\"v\":[[{}]]}", 4, depth),
        ("depth", "v: [[{}]]\n", 4, depth),
        ("depth", "v:\n- - a: 1\n", 4, depth),
        // The alias adds its value; the comma or key around it is the document's own.
        ("aliasBytes", "a: &a \"0123456789\"\nb: *a\n", 12, alias_bytes),
    ];
    for (name, file, limit, set) in rows {
        assert_eq!(problem(file.as_bytes(), *set, *limit), None, "{name} {file}");
        let below = limit - 1;
        assert_eq!(problem(file.as_bytes(), *set, below), Some((*name, below, 1)), "{file}");
        // The document is counted where it is not the first.
        let first = if file.starts_with('{') { "{}\n" } else { "v: 1\n---\n" };
        let second = format!("{first}{file}");
        let (_, _, document) = problem(second.as_bytes(), *set, below).unwrap();
        assert_eq!(document, 2, "{file}");
    }
}

#[test]
fn a_huge_document_is_refused_before_it_is_read() {
    let limits = Limits {
        document_bytes: 10_000,
        ..Limits::default()
    };
    for start in ["{\"v\":\"", "v: \""] {
        let file = format!("{start}{}", "x".repeat(1_000_000));
        let error = lines_with(file.as_bytes(), limits, 1000).unwrap_err();
        assert!(error.contains("the limit documentBytes of 10000"), "{error}");
    }
}

#[test]
fn nesting_may_go_as_deep_as_in_go() {
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
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let error = lines(bomb.as_bytes()).unwrap_err();
    assert!(error.contains("excessive aliasing"), "{error}");
}

#[test]
fn unsorted_objects_inside_each_other_stay_linear() {
    let mut json = "{\"b\":".repeat(9_999) + "\"" + &"x".repeat(1 << 20) + "\"";
    json += &",\"a\":1}".repeat(9_999);
    let line = lines(json.as_bytes()).unwrap();
    assert!(line.starts_with("{\"a\":1,\"b\":{\"a\":1,"));
    assert_eq!(line.len(), json.len() + 1);
}
