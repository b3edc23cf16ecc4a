//! The canonical form, case by case. The expected lines come from catalogd's own libraries.

use crate::common::lines;
use catalog_mirror_fbc::{Chunks, FbcLimits, Meta, is_yaml, yaml_to_json};

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (file, expected) in table {
        match lines(file.as_bytes()) {
            Ok(lines) => assert_eq!(lines, *expected, "of {file:?}"),
            Err(error) => panic!("{file:?} is refused: {error}"),
        }
    }
}

/// Checks rows such as `file => lines` and `file =! error`, where `⏎` is a line feed.
#[track_caller]
fn check_rows(rows: &str) {
    for row in rows.trim().lines() {
        let row = row.replace('⏎', "\n");
        if let Some((file, error)) = row.split_once(" =! ") {
            refuse(&[(file, error)]);
        } else {
            let (file, expected) = row.split_once(" => ").unwrap();
            check(&[(file, &format!("{expected}\n"))]);
        }
    }
}

#[track_caller]
fn refuse(table: &[(&str, &str)]) {
    for (file, expected) in table {
        match lines(file.as_bytes()) {
            Ok(lines) => panic!("{file:?} is accepted as {lines}"),
            Err(error) => assert!(error.contains(expected), "{file:?} gives: {error}"),
        }
    }
}

#[test]
fn keys_are_sorted_by_bytes_at_every_level() {
    check_rows(
        r#"
{"b":1,"a":{"d":[{"z":1,"y":2}],"c":2}} => {"a":{"c":2,"d":[{"y":2,"z":1}]},"b":1}
{"é":1,"z":2,"😀":4,"ﬁ":5} => {"z":2,"é":1,"ﬁ":5,"😀":4}
{"a\"":1,"a!":2,"a#":3} => {"a!":2,"a\"":1,"a#":3}
{"":1,"a":2} => {"":1,"a":2}
"#,
    );
}

#[test]
fn duplicate_keys_keep_the_last_value() {
    check_rows(
        r#"
{"v":{"a":1,"b":2,"a":3}} => {"v":{"a":3,"b":2}}
{"v":{"a":1,"\u0061":2}} => {"v":{"a":2}}
v: {y: 1, yes: 2, 'true': 3}⏎ => {"v":{"true":3}}
v: {1: a, '1': b}⏎ => {"v":{"1":"b"}}
"#,
    );
}

#[test]
fn strings_are_escaped_as_go_escapes_them() {
    check_rows(
        r#"
{"v":"<>&\/'"} => {"v":"<>&/'"}
{"v":"\u0000\b\f\n\r\t\u001f"} => {"v":"\u0000\b\f\n\r\t\u001f"}
{"v":"\u2028\u2029"} => {"v":"\u2028\u2029"}
{"v":"\ud83d\ude00"} => {"v":"😀"}
"#,
    );
    // Each invalid byte is replaced, also beside characters that start like a line separator.
    for (json, line) in [
        (&br#"{"v":"\u007f\u202a"}"#[..], "{\"v\":\"\u{7f}\u{202a}\"}\n"),
        (
            br#"{"v":"\ud800x\udc00\ud800A"}"#,
            "{\"v\":\"\u{fffd}x\u{fffd}\u{fffd}A\"}\n",
        ),
        (b"{\"v\":\"\xe2\x80\xa8\xe2\x82\xac\"}", "{\"v\":\"\\u2028\u{20ac}\"}\n"),
        (b"{\"v\":\"\xff\xe2\x80\"}", "{\"v\":\"\u{fffd}\u{fffd}\u{fffd}\"}\n"),
        (b"{\"v\":\"\xe2\x80\xa8\xe2\"}", "{\"v\":\"\\u2028\u{fffd}\"}\n"),
        (b"{\"v\":\"\xe2\x80\xa2\xe2\\n\"}", "{\"v\":\"\u{2022}\u{fffd}\\n\"}\n"),
        (
            b"{\"\xe4\xbd\":1,\"a\\u0000\xff\":2}",
            "{\"a\\u0000\u{fffd}\":2,\"\u{fffd}\u{fffd}\":1}\n",
        ),
    ] {
        assert_eq!(lines(json).as_deref(), Ok(line));
    }
}

#[test]
fn json_numbers_print_as_float64_or_keep_their_digits() {
    check_rows(
        r#"
{"v":[1.0,1e20,1e21,1E+2,-0.0,-0,0]} => {"v":[1,100000000000000000000,1e+21,100,-0,-0,0]}
{"v":[1.50,0.10,1e-6,1e-7,-1.5e-300,5e-324]} => {"v":[1.5,0.1,0.000001,1e-7,-1.5e-300,5e-324]}
{"v":[123456789.12345679,1.2345678901234568e29]} => {"v":[123456789.12345679,1.2345678901234568e+29]}
{"v":[9007199254740993,123456789012345678901234567890]} => {"v":[9007199254740993,123456789012345678901234567890]}
"#,
    );
}

#[test]
fn json_and_yaml_may_alternate_in_one_file() {
    check_rows(
        r#"
{"a":1}{"b":2}⏎ {"c":3} => {"a":1}⏎{"b":2}⏎{"c":3}
{"a":1}⏎---⏎b: 2⏎ => {"a":1}⏎{"b":2}
{'a':1} => {"a":1}
---⏎{"a":1}⏎---⏎{"b":2}⏎ => {"a":1}⏎{"b":2}
a: 1⏎---⏎{"b":2}⏎ => {"a":1}⏎{"b":2}
{"a":1} # more⏎ => {"a":1}
{"a":1}⏎null⏎ => {"a":1}⏎null
{"a":1}{"b":2}⏎---⏎c: 3⏎ =! document 3, line 2
{"a":1} #x =! document 2, line 1
{"a": =! ends too early
{"a":1} garbage =! invalid JSON
"#,
    );
    check(&[("\u{feff}{\"a\":1}", "{\"a\":1}\n"), ("\u{a0}{\"a\":1}", "{\"a\":1}\n")]);
    refuse(&[
        ("{\"a\":1}\0", "invalid JSON"),
        ("{\"a\":\"\u{1}\"}", "control character"),
    ]);
}

#[test]
fn documents_are_separated_by_lines() {
    check_rows(
        r#"
---⏎---⏎a: 1⏎---⏎# nothing⏎--- # b⏎b: 2⏎---⏎null⏎---⏎~⏎--- => {"a":1}⏎{"b":2}
a: |+⏎  x => {"a":"x\n"}
a: |⏎  x⏎  ---⏎ => {"a":"x\n---\n"}
{}⏎---⏎{}⏎ => {}⏎{}
a: 1⏎---b: 1⏎ =! document 1, line 2: only a comment may follow the document separator, not `b: 1`
a: 1⏎--- {b: 1}⏎ =! separator
a: 1⏎---⏎b: [⏎---⏎ =! document 2
"#,
    );
    check(&[
        ("", ""),
        ("# comment\n\n", ""),
        (
            "a: 1\r\n---\t\r\nb: |+\r\n  x\r\n\r\n",
            "{\"a\":1}\n{\"b\":\"x\\n\\n\"}\n",
        ),
        ("a: 1\rb: 2\r", "{\"a\":1,\"b\":2}\n"),
    ]);
}

#[test]
fn merge_keys_merge_at_their_position() {
    check_rows(
        r#"
b: &b {x: 1, z: 2}⏎m: {<<: *b, z: 3}⏎ => {"b":{"x":1,"z":2},"m":{"x":1,"z":3}}
b: &b {x: 1, z: 2}⏎m: {z: 3, <<: *b}⏎ => {"b":{"x":1,"z":2},"m":{"x":1,"z":2}}
b: &b {x: 1}⏎m: {<<: [*b, {x: 2, w: 3}]}⏎ => {"b":{"x":1},"m":{"w":3,"x":1}}
m: {<<: {a: &a {b: 1}}, c: *a}⏎ => {"m":{"a":{"b":1},"c":{"b":1}}}
m: {<<: [], '<<': 1}⏎ => {"m":{"<<":1}}
a: &a 1⏎b: *a⏎c: &a 2⏎d: *a⏎ => {"a":1,"b":1,"c":2,"d":2}
a: &a k⏎*a : 1⏎ => {"a":"k","k":1}
&a <<: {x: &b 0x10}⏎b: *a⏎*b : *b⏎ => {"16":16,"b":"<<","x":16}
m: {<<: &l [{x: 1}, {u: 2}]}⏎o: *l⏎ => {"m":{"u":2,"x":1},"o":[{"x":1},{"u":2}]}
a: &a {<<: [{x: 1}, {x: 2, u: 2}], z: 3}⏎b: *a⏎ => {"a":{"u":2,"x":1,"z":3},"b":{"u":2,"x":1,"z":3}}
a: &a {<<: {u: 2}, z: 3}⏎c: {<<: [*a, {w: 4, z: 5}]}⏎ => {"a":{"u":2,"z":3},"c":{"u":2,"w":4,"z":3}}
m: {<<: 5}⏎ =! merge key
a: &a [1]⏎m: {<<: *a}⏎ =! merge key
a: &a [1]⏎m: {<<: [*a]}⏎ =! merge key
a: &a [*a]⏎ =! alias
a: &a {x: 1}⏎*a : 1⏎ =! cannot be a key
m: {<<: [{x: 1}, [{u: 2}]]}⏎ =! merge key
a: &a {<<: *a}⏎ =! alias
a: *b⏎ =! unknown anchor
"#,
    );
}

#[test]
fn keys_become_strings_or_errors() {
    check_rows(
        r#"
v: {y: 1}⏎ => {"v":{"true":1}}
v: {0x10: 1, 1.5: 2, 1e6: 3, .inf: 4, .nan: 5}⏎ => {"v":{".inf":4,".nan":5,"1.5":2,"16":1,"1e+06":3}}
v: {2020-01-01: 1, !!binary aGk=: 2}⏎ => {"v":{"2020-01-01":1,"hi":2}}
v: {~: 1}⏎ =! null cannot be a key
v: {[a]: 1}⏎ =! a mapping or sequence cannot be a key
v: {~: 1}⏎v: 2⏎ =! null cannot be a key
v: {18446744073709551615: 1}⏎ =! so large an integer cannot be a key
"#,
    );
}

#[test]
fn meta_keys_match_in_any_case() {
    check_rows(
        r#"
Schema: a⏎NAME: b⏎ => {"NAME":"b","Schema":"a"}
{"\u017fchema":"a"} => {"ſchema":"a"}
schema: a⏎schema: b⏎ => {"schema":"b"}
other: 5⏎ => {"other":5}
schema: a⏎SCHEMA: b⏎ =! differ only in case
x: a⏎X: b⏎ =! differ only in case
straße: a⏎strasse: b⏎ =! differ only in case
schema: 5⏎ =! "schema" must be a string
name: n⏎ =! "name" must be a string
package: null⏎ =! "package" must be a string
- a⏎ =! not a list
hello⏎ =! not a string
"#,
    );
}

#[test]
fn content_that_catalogd_loses_is_kept_or_refused() {
    check_rows(
        r#"
v: [9007199254740993, 18446744073709551616]⏎ => {"v":[9007199254740993,18446744073709551616]}
v: 0xFFFFFFFFFFFFFFFF⏎ => {"v":18446744073709551615}
a: 1⏎...⏎b: 2⏎ => {"a":1}⏎{"b":2}
v: 1e400⏎ => {"v":"1e400"}
v: "\/ \ud83d\ude00" => {"v":"/ 😀"}
v: !!timestamp 2020-13-45⏎ => {"v":"2020-13-45"}
a: 1⏎...⏎ => {"a":1}
{"v":1e400} =! 1e400 is out of range
v: !!float 18446744073709551615⏎ =! !!float
v: !!timestamp 12020-01-01⏎ =! !!timestamp
{a: 1} {b: 2}⏎ =! invalid
---⏎{a: 1}}⏎ =! invalid YAML
v: [a:]⏎ =! white space is needed
v: [?a]⏎ =! white space is needed
v: [:a]⏎ =! white space is needed
v: {:a}⏎ =! white space is needed
"#,
    );
}

#[test]
fn line_separators_are_line_breaks_in_yaml() {
    check(&[
        ("v: |\n  a\u{2028}  b\n", "{\"v\":\"a\\u2028b\\n\"}\n"),
        ("v: 'a \u{2028} b'\n", "{\"v\":\"a\\u2028b\"}\n"),
        ("a: 1\u{85}b: 2\n", "{\"a\":1,\"b\":2}\n"),
        ("# a\u{2028}\nv: 1 # b\u{2029} # c\n", "{\"v\":1}\n"),
    ]);
    refuse(&[
        ("v: a\u{2028}b\n", "line separator"),
        ("# a\u{2028}w: 2\nv: 1\n", "line separator"),
        ("v: 1 # a\u{2029}w: 2\n", "line separator"),
        ("v: |-\n  a\u{2028}\n", "line separator"),
        ("v: |\n  a\n  \u{2028}\n\n", "line separator"),
        ("v: >\n  \u{2028}a\n", "line separator"),
        ("v: a\u{1}b\n", "control"),
        ("# c\n\u{feff}v: 1\n", "byte order mark"),
        ("\u{feff}\u{feff}v: 1\n", "byte order mark"),
        ("---\n \u{feff}v: 1\n", "byte order mark"),
    ]);
}

#[test]
fn utf_16_is_accepted_if_its_lines_are_whole() {
    let units = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
    let big = units("\u{feff}a: é\n", u16::to_be_bytes);
    assert_eq!(lines(&big).as_deref(), Ok("{\"a\":\"é\"}\n"));
    let little = units("\u{feff}a: b\n", u16::to_le_bytes);
    assert!(lines(&little).is_err(), "a line feed is added to an odd byte");
    assert!(lines(b"a: \"\xff\"\n").is_err());
}

/// In chunks of any size, and where invalid bytes in JSON are replaced by longer ones.
#[test]
fn position_names_document_and_first_line() {
    let yaml = b"# a comment\nname: a\n---\nname: b\nschema: s\n---\n\nname: c\n".as_slice();
    let json = b"{\"name\":\n\"a\"}\n\n{\"name\":\"\xff\xff\"} {\"name\":\"b\"}\n{\"name\":\"c\"}".as_slice();
    let mixed = b"{\"name\":\"\xff\"}\nname: b\n---\nname: c\n".as_slice();
    for (file, expected) in [
        (yaml, &[(1, 1), (2, 4), (3, 7)][..]),
        (json, &[(1, 1), (2, 4), (3, 4), (4, 5)]),
        (mixed, &[(1, 1), (2, 2), (3, 4)]),
    ] {
        for size in [1, 20, 1 << 20] {
            let limits = FbcLimits::default();
            let mut found = Vec::new();
            for chunk in Chunks::new(file, limits, size) {
                let mut sink = |meta: Meta<'_>| found.push((meta.position.document, meta.position.line));
                chunk.unwrap().metas(&limits, &mut sink).unwrap();
            }
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(file));
        }
    }
}

#[test]
fn is_yaml_accepts_any_value_of_the_first_document() {
    for text in ["", "a: b", "text", "[1, 2]", "a\n---\n[", "{\"a\":1}", "# nothing"] {
        assert!(is_yaml(text.as_bytes()), "{text}");
    }
    for text in ["a: b: c", "[", "a:\n\t- b", "\"", "%a", "a: @b"] {
        assert!(!is_yaml(text.as_bytes()), "{text}");
    }
}

#[test]
fn yaml_to_json_converts_the_first_document() {
    let table = [
        ("b: 1\na: [x, 1.0, yes]\n", r#"{"a":["x",1,true],"b":1}"#),
        ("# comment\n---\na: b\n---\nc: d", r#"{"a":"b"}"#),
        ("---\na: b\r\nc: d\r\n", r#"{"a":"b","c":"d"}"#),
        ("{\"a\": \"<\"}", r#"{"a":"<"}"#),
        ("", "null"),
        ("---\n---\na: b", "null"),
    ];
    for (yaml, json) in table {
        assert_eq!(yaml_to_json(yaml.as_bytes()).unwrap(), json, "{yaml}");
    }
    for text in ["[1]", "text", "a: b: c"] {
        assert!(yaml_to_json(text.as_bytes()).is_err(), "{text}");
    }
}
