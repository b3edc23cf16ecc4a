//! Exactly the limit passes, one more is an error; deep and repeated input does no harm.

mod common;

use common::{lines, lines_with};
use fbc::Limits;

#[test]
fn a_document_may_have_exactly_so_many_bytes() {
    for file in ["{\"v\":\"0123456789\"}", "v: '0123456789ab'\n"] {
        let limits = |document_bytes| Limits {
            document_bytes,
            ..Limits::default()
        };
        assert!(lines_with(file.as_bytes(), limits(file.len()), 1).is_ok());
        let error = lines_with(file.as_bytes(), limits(file.len() - 1), 1).unwrap_err();
        assert!(error.contains("bytes in a document"), "{error}");
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
        assert!(error.contains("more than 10000 bytes"), "{error}");
    }
}

#[test]
fn nesting_may_go_exactly_so_deep() {
    let json = |depth| format!("{{\"v\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let flow = |depth| format!("v: {}{}\n", "[".repeat(depth), "]".repeat(depth));
    for nested in [json as fn(usize) -> String, flow] {
        assert!(lines(nested(9_999).as_bytes()).is_ok());
        let error = lines(nested(10_000).as_bytes()).unwrap_err();
        assert!(error.contains("10000 levels"), "{error}");
        assert!(lines(nested(1_000_000).as_bytes()).is_err());
    }
}

#[test]
fn aliases_may_add_exactly_so_many_bytes() {
    // The alias adds its value; the comma or key around it is the document's own.
    let file = b"a: &a \"0123456789\"\nb: *a\n";
    let limits = |alias_bytes| Limits {
        alias_bytes,
        ..Limits::default()
    };
    assert!(lines_with(file, limits(12), 1).is_ok());
    assert!(lines_with(file, limits(11), 1).is_err());
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
