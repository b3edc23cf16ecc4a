//! The canonical form, case by case. The expected lines come from catalogd's own libraries.

use crate::common::lines;
use fbc::{Chunks, FbcLimits, Meta, is_yaml, yaml_to_json};

/// Rows `file => lines` and `file =! error`, under headings. In both parts `⏎` is a line feed,
/// `«e2»` a byte, and `«2028»` a character.
const ROWS: &str = r##"
## keys are sorted by bytes at every level
{"b":1,"a":{"d":[{"z":1,"y":2}],"c":2}} => {"a":{"c":2,"d":[{"y":2,"z":1}]},"b":1}
{"é":1,"z":2,"😀":4,"ﬁ":5} => {"z":2,"é":1,"ﬁ":5,"😀":4}
{"a\"":1,"a!":2,"a#":3} => {"a!":2,"a\"":1,"a#":3}
{"":1,"a":2} => {"":1,"a":2}

## duplicate keys keep the last value
{"v":{"a":1,"b":2,"a":3}} => {"v":{"a":3,"b":2}}
{"v":{"a":1,"\u0061":2}} => {"v":{"a":2}}
v: {y: 1, yes: 2, 'true': 3}⏎ => {"v":{"true":3}}
v: {1: a, '1': b}⏎ => {"v":{"1":"b"}}

## strings are escaped as Go escapes them, and each invalid byte is replaced
{"v":"<>&\/'"} => {"v":"<>&/'"}
{"v":"\u0000\b\f\n\r\t\u001f"} => {"v":"\u0000\b\f\n\r\t\u001f"}
{"v":"\u2028\u2029"} => {"v":"\u2028\u2029"}
{"v":"\ud83d\ude00"} => {"v":"😀"}
{"v":"\u007f\u202a"} => {"v":"«007f»«202a»"}
{"v":"\ud800x\udc00\ud800A"} => {"v":"«fffd»x«fffd»«fffd»A"}
{"v":"«e2»«80»«a8»«e2»«82»«ac»"} => {"v":"\u2028€"}
{"v":"«ff»«e2»«80»"} => {"v":"«fffd»«fffd»«fffd»"}
{"v":"«e2»«80»«a8»«e2»"} => {"v":"\u2028«fffd»"}
{"v":"«e2»«80»«a2»«e2»\n"} => {"v":"•«fffd»\n"}
{"«e4»«bd»":1,"a\u0000«ff»":2} => {"a\u0000«fffd»":2,"«fffd»«fffd»":1}

## JSON numbers print as float64 or keep their digits
{"v":[1.0,1e20,1e21,1E+2,-0.0,-0,0]} => {"v":[1,100000000000000000000,1e+21,100,-0,-0,0]}
{"v":[1.50,0.10,1e-6,1e-7,-1.5e-300,5e-324]} => {"v":[1.5,0.1,0.000001,1e-7,-1.5e-300,5e-324]}
{"v":[123456789.12345679,1.2345678901234568e29]} => {"v":[123456789.12345679,1.2345678901234568e+29]}
{"v":[9007199254740993,123456789012345678901234567890]} => {"v":[9007199254740993,123456789012345678901234567890]}

## JSON and YAML may alternate in one file
{"a":1}{"b":2}⏎ {"c":3} => {"a":1}⏎{"b":2}⏎{"c":3}
{"a":1}⏎---⏎b: 2⏎ => {"a":1}⏎{"b":2}
{'a':1} => {"a":1}
---⏎{"a":1}⏎---⏎{"b":2}⏎ => {"a":1}⏎{"b":2}
a: 1⏎---⏎{"b":2}⏎ => {"a":1}⏎{"b":2}
{"a":1} # more⏎ => {"a":1}
{"a":1} ⏎ b: 2⏎ c: 3⏎ => {"a":1}⏎{"b":2,"c":3}
{"a":1}⏎null⏎ => {"a":1}⏎null
{"a":1}{"b":2}⏎---⏎c: 3⏎ =! document 3, line 2
{"a":1} #x =! document 2, line 1
{"a": =! ends too early
{"a":1} garbage =! invalid JSON
«feff»{"a":1} => {"a":1}
«00a0»{"a":1} => {"a":1}
{"a":1}«00» =! invalid JSON
{"a":"«01»"} =! control character

## documents are separated by lines
---⏎---⏎a: 1⏎---⏎# nothing⏎--- # b⏎b: 2⏎---⏎null⏎---⏎~⏎--- => {"a":1}⏎{"b":2}
a: |+⏎  x => {"a":"x\n"}
a: |⏎  x⏎  ---⏎ => {"a":"x\n---\n"}
{}⏎---⏎{}⏎ => {}⏎{}
a: 1⏎---b: 1⏎ =! document 1, line 2: only a comment may follow the document separator, not `b: 1`
a: 1⏎--- {b: 1}⏎ =! separator
a: 1⏎---⏎b: [⏎---⏎ =! document 2
a: 1«0d»⏎---«09»«0d»⏎b: |+«0d»⏎  x«0d»⏎«0d»⏎ => {"a":1}⏎{"b":"x\n\n"}
a: 1«0d»b: 2«0d» => {"a":1,"b":2}

## merge keys merge at their position
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

## keys become strings or errors
v: {y: 1}⏎ => {"v":{"true":1}}
v: {0x10: 1, 1.5: 2, 1e6: 3, .inf: 4, .nan: 5}⏎ => {"v":{".inf":4,".nan":5,"1.5":2,"16":1,"1e+06":3}}
v: {2020-01-01: 1, !!binary aGk=: 2}⏎ => {"v":{"2020-01-01":1,"hi":2}}
v: {~: 1}⏎ =! null cannot be a key
v: {[a]: 1}⏎ =! a mapping or sequence cannot be a key
v: {~: 1}⏎v: 2⏎ =! null cannot be a key
v: {18446744073709551615: 1}⏎ =! so large an integer cannot be a key

## meta keys match in any case
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

## content that catalogd loses is kept or refused
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

## line separators are line breaks in YAML
v: |⏎  a«2028»  b⏎ => {"v":"a\u2028b\n"}
v: 'a «2028» b'⏎ => {"v":"a\u2028b"}
a: 1«0085»b: 2⏎ => {"a":1,"b":2}
# a«2028»⏎v: 1 # b«2029» # c⏎ => {"v":1}
v: a«2028»b⏎ =! line separator
# a«2028»w: 2⏎v: 1⏎ =! line separator
v: 1 # a«2029»w: 2⏎ =! line separator
v: |-⏎  a«2028»⏎ =! line separator
v: |⏎  a⏎  «2028»⏎⏎ =! line separator
v: >⏎  «2028»a⏎ =! line separator
v: a«01»b⏎ =! control
# c⏎«feff»v: 1⏎ =! byte order mark
«feff»«feff»v: 1⏎ =! byte order mark
---⏎ «feff»v: 1⏎ =! byte order mark

## UTF-16 is accepted if its lines are whole: in little endian, a line feed is added to an odd byte
«fe»«ff»«00»a«00»:«00» «00»«e9»«00»⏎ => {"a":"é"}
«ff»«fe»a«00»:«00» «00»b«00»⏎«00» =! UTF-16
a: "«ff»"⏎ =! UTF-8
"##;

/// Returns the bytes of a part of a row.
fn bytes(part: &str) -> Vec<u8> {
    let part = part.replace('⏎', "\n");
    let texts = part.split(['«', '»']).enumerate();
    let bytes = texts.map(|(at, text)| match u32::from_str_radix(text, 16) {
        Ok(byte) if at % 2 == 1 && text.len() == 2 => vec![byte as u8],
        Ok(code) if at % 2 == 1 => char::from_u32(code).unwrap().to_string().into_bytes(),
        _ => text.as_bytes().to_vec(),
    });
    bytes.collect::<Vec<_>>().concat()
}

#[test]
fn file_has_the_lines_of_catalogd_or_is_refused() {
    for row in ROWS
        .lines()
        .filter(|row| !row.is_empty() && !row.starts_with("##"))
    {
        if let Some((file, expected)) = row.split_once(" => ") {
            let expected = String::from_utf8(bytes(expected)).unwrap();
            assert_eq!(lines(&bytes(file)), Ok(expected + "\n"), "{row}");
        } else {
            let (file, expected) = row.split_once(" =! ").unwrap();
            let error = lines(&bytes(file)).expect_err(row);
            assert!(error.contains(expected), "{row}: {error}");
        }
    }
    for empty in ["", "# comment\n\n"] {
        assert_eq!(lines(empty.as_bytes()).as_deref(), Ok(""), "{empty:?}");
    }
}

#[test]
fn file_is_json_if_a_brace_is_within_its_first_4096_bytes() {
    for (spaces, is_json) in [(4095, true), (4096, false)] {
        let file = " ".repeat(spaces) + "{\"a\":1}{\"b\":2}";
        assert_eq!(lines(file.as_bytes()).is_ok(), is_json, "{spaces}");
    }
}

#[test]
fn document_belongs_to_its_package_or_to_the_one_that_it_describes() {
    let package =
        r#"{"schema":"olm.package","name":"a"} {"schema":"olm.package","package":"b","name":"c"}"#;
    let others = r#"{"schema":"olm.bundle","package":"d","name":"e"} {"package":"f"} {"schema":"x","name":"g"} {}"#;
    let mut groups = Vec::new();
    for chunk in Chunks::new(
        format!("{package} {others}").as_bytes(),
        FbcLimits::default(),
        1 << 20,
    ) {
        let mut sink = |meta: Meta<'_>| groups.push(meta.group().to_owned());
        chunk
            .unwrap()
            .metas(&FbcLimits::default(), &mut sink)
            .unwrap();
    }
    assert_eq!(groups, ["a", "b", "d", "f", "", ""]);
}

/// In chunks of any size, and where invalid bytes in JSON are replaced by longer ones.
#[test]
fn position_names_document_and_first_line() {
    let yaml = b"# a comment\nname: a\n---\nname: b\nschema: s\n---\n\nname: c\n".as_slice();
    let json = b"{\"name\":\n\"a\"}\n\n{\"name\":\"\xff\xff\"} {\"name\":\"b\"}\n{\"name\":\"c\"}"
        .as_slice();
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
                let mut sink =
                    |meta: Meta<'_>| found.push((meta.position.document, meta.position.line));
                chunk.unwrap().metas(&limits, &mut sink).unwrap();
            }
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(file));
        }
    }
}

#[test]
fn is_yaml_accepts_any_value_of_the_first_document() {
    for text in [
        "",
        "a: b",
        "text",
        "[1, 2]",
        "a\n---\n[",
        "{\"a\":1}",
        "# nothing",
    ] {
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
