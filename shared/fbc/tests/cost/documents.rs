//! Families of documents that are as expensive as one can make them.

use std::fmt::Write as _;
use std::io::Read;

/// A document of a family, kept as its parts.
pub(crate) struct Document(Vec<u8>);

impl Document {
    pub(crate) fn reader(&self) -> impl Read {
        &self.0[..]
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Documents of one kind and any size.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Makes a document of about this many bytes.
    make: fn(usize) -> Vec<u8>,
    /// True if they exceed a limit.
    pub(crate) refused: bool,
}

impl Family {
    pub(crate) fn document(&self, size: usize) -> Document {
        Document((self.make)(size))
    }
}

pub(crate) const FAMILIES: &[Family] = &[
    family(
        "alias of a list",
        |size| between("x: &a [", "1,", size / 2, "]\ny: *a\n"),
        false,
    ),
    family(
        "many aliases",
        |size| between("x: &a {b: 1, a: 2}\ny: [", "*a,", size, "]\n"),
        true,
    ),
    family(
        "alias of a long string",
        |size| between("x: &a '", "x", size, "'\ny: [*a,*a,*a,*a,*a,*a]\n"),
        true,
    ),
    family("merges of nothing", |size| between("<<: [", "{},", size, "]\n"), true),
    family(
        "merges",
        |size| between("<<: [", "{abc: 1, def: 2},", size, "]\n"),
        true,
    ),
    family(
        "merges of an alias",
        |size| between("x: &a {b: 1, a: 2}\n<<: [", "*a,", size, "]\n"),
        true,
    ),
    family(
        "flow depth",
        |size| between("x: [", &nested("[", "],", 5000), size, "]\n"),
        false,
    ),
    family(
        "block depth",
        |size| between("x:\n", &format!("{}x\n", "- ".repeat(450)), size, ""),
        false,
    ),
    family(
        "anchors never used",
        |size| numbered("x:\n", size, |at, out| writeln!(out, "- &a{at} x"), ""),
        true,
    ),
    family(
        "one anchor, set often",
        |size| between("x: [", "&a x,", size, "]\n"),
        true,
    ),
    family("long key", |size| between("? '", "k", size, "'\n: 1\n"), false),
    family("comments", |size| between("a: 1\n", "# comment\n", size, ""), false),
    family(
        "comments, separators",
        |size| between("a: \"\u{2028}\"\n", "# comment\n", size, ""),
        false,
    ),
    family("empty documents", |size| between("a: 1\n", "---\n", size, ""), false),
    family("ended documents", |size| between("a: 1\n", "...\n", size, ""), false),
    family(
        "keys",
        |size| numbered("", size, |at, out| writeln!(out, "k{at}: {at}"), ""),
        false,
    ),
    family("keys without a value", |size| between("v: {", "n,", size, "}\n"), true),
    family("nulls", |size| between("v: [", "~,", size, "]\n"), false),
    family(
        "empty YAML containers",
        |size| between("v: [", "{},[],", size, "]\n"),
        false,
    ),
    family(
        "lines of one string",
        |size| between("v: >\n", " text of a line\n", size, ""),
        false,
    ),
    family(
        "quoted lines",
        |size| between("v: '", "text of a line\n  ", size, "'\n"),
        false,
    ),
    family("escapes in YAML", |size| between("v: \"", "\\x01", size, "\"\n"), false),
    family("base64", |size| between("v: !!binary '", "////", size, "'\n"), true),
    family("long number", |size| between("v: 1", "0", size, "\n"), false),
    family(
        "UTF-16",
        |size| utf16(&between("v: '", "\u{20ac}", size * 3 / 2, "'\n")),
        false,
    ),
    family("next lines", |size| between("v: '", "text\u{85}  ", size, "'\n"), false),
    family(
        "directives",
        |size| numbered("", size, |at, out| write!(out, "%TAG !{at}! x\r"), "--- {}\n"),
        true,
    ),
    family("CRLF", |size| between("v:\r\n", "- a\r\n", size, ""), false),
    family(
        "JSON depth",
        |size| between("{\"v\":[0", &format!(",{}", nested("[", "]", 9000)), size, "]}"),
        false,
    ),
    family(
        "escapes in JSON",
        |size| between("{\"v\":\"", "\\u0001", size, "\"}"),
        false,
    ),
    family(
        "line separators",
        |size| between("{\"v\":\"", "\u{2028}", size, "\"}"),
        false,
    ),
    family(
        "invalid UTF-8",
        |size| latin1(&between("{\"v\":\"", "\u{ff}", size * 2, "\"}")),
        true,
    ),
    family(
        "duplicate keys",
        |size| between("{\"z\":0", ",\"\":0", size, "}"),
        false,
    ),
    family(
        "duplicate escaped keys",
        |size| between("{\"z\":0", ",\"\\n\":0", size, "}"),
        false,
    ),
    family(
        "distinct keys",
        |size| numbered("{\"z\":0", size, |at, out| write!(out, ",\"{at:x}\":0"), "}"),
        false,
    ),
    family(
        "upper case",
        |size| numbered("{\"z\":0", size, |at, out| write!(out, ",\"K{at:X}\":0"), "}"),
        true,
    ),
    family(
        "unsorted objects",
        |size| between("{\"v\":[0", ",{\"b\":1,\"a\":2}", size, "]}"),
        false,
    ),
    family(
        "empty JSON containers",
        |size| between("{\"v\":[0", ",{},[]", size, "]}"),
        false,
    ),
    family("exponents", |size| between("{\"v\":[0", ",1e20", size, "]}"), true),
    family(
        "small JSON documents",
        |size| between("{\"a\":1}", "{}\n", size, ""),
        false,
    ),
    family(
        "long name",
        |size| between("{\"name\":\"", "\\u00e9", size, "\"}"),
        false,
    ),
];

const fn family(name: &'static str, make: fn(usize) -> Vec<u8>, refused: bool) -> Family {
    Family { name, make, refused }
}

/// Returns `start`, as often as it fits `part`, and `end`.
fn between(start: &str, part: &str, size: usize, end: &str) -> Vec<u8> {
    let parts = size.saturating_sub(start.len() + end.len()) / part.len();
    [start, &part.repeat(parts), end].concat().into_bytes()
}

/// As `between`, with numbered parts.
fn numbered(start: &str, size: usize, part: fn(usize, &mut String) -> std::fmt::Result, end: &str) -> Vec<u8> {
    let mut text = String::from(start);
    let mut at = 0;
    while text.len() + end.len() < size {
        part(at, &mut text).expect("writing to memory does not fail");
        at += 1;
    }
    text.push_str(end);
    text.into_bytes()
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    let inner = close.trim_end_matches(',');
    format!("{}{}{close}", open.repeat(depth), inner.repeat(depth - 1))
}

fn utf16(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_be_bytes).collect()
}

fn latin1(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect()
}
