//! Families of documents that are as expensive as one can make them.

use std::fmt::Write as _;

/// Documents of one kind.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Returns one of about a number of bytes.
    pub(crate) document: Box<dyn Fn(usize) -> Vec<u8>>,
    /// True if they exceed a limit.
    pub(crate) refused: bool,
}

pub(crate) fn families() -> Vec<Family> {
    vec![
        refused("alias of a list", "x: &a [", "1,", "]\ny: *a\n"),
        refused("many aliases", "x: &a {b: 1, a: 2}\ny: [", "*a,", "]\n"),
        refused("alias of a long string", "x: &a '", "x", "'\ny: [*a,*a,*a,*a,*a,*a]\n"),
        refused("merges of nothing", "<<: [", "{},", "]\n"),
        refused("merges", "<<: [", "{abc: 1, def: 2},", "]\n"),
        refused("merges of an alias", "x: &a {b: 1, a: 2}\n<<: [", "*a,", "]\n"),
        family_of("flow depth", |size| {
            between("x: [", &nested("[", "],", 5000), size, "]\n")
        }),
        family_of("block depth", |size| {
            between("x:\n", &format!("{}x\n", "- ".repeat(450)), size, "")
        }),
        refused_of("anchors never used", |size| {
            numbered("x:\n", size, |at, out| writeln!(out, "- &a{at} x"), "")
        }),
        refused("one anchor, set often", "x: [", "&a x,", "]\n"),
        family("long key", "? '", "k", "'\n: 1\n"),
        family("comments", "a: 1\n", "# comment\n", ""),
        family("comments, separators", "a: \"\u{2028}\"\n", "# comment\n", ""),
        family("empty documents", "a: 1\n", "---\n", ""),
        family("ended documents", "a: 1\n", "...\n", ""),
        family_of("keys", |size| {
            numbered("", size, |at, out| writeln!(out, "k{at}: {at}"), "")
        }),
        refused("keys without a value", "v: {", "n,", "}\n"),
        family("nulls", "v: [", "~,", "]\n"),
        family("empty YAML containers", "v: [", "{},[],", "]\n"),
        family("lines of one string", "v: >\n", " text of a line\n", ""),
        family("quoted lines", "v: '", "text of a line\n  ", "'\n"),
        family("escapes in YAML", "v: \"", "\\x01", "\"\n"),
        refused("base64", "v: !!binary '", "////", "'\n"),
        family("long number", "v: 1", "0", "\n"),
        family_of("UTF-16", |size| {
            utf16(&between("v: '", "\u{20ac}", size * 3 / 2, "'\n"))
        }),
        family("next lines", "v: '", "text\u{85}  ", "'\n"),
        refused_of("directives", |size| {
            numbered("", size, |at, out| write!(out, "%TAG !{at}! x\r"), "--- {}\n")
        }),
        family("CRLF", "v:\r\n", "- a\r\n", ""),
        family_of("JSON depth", |size| {
            between("{\"v\":[0", &format!(",{}", nested("[", "]", 9000)), size, "]}")
        }),
        family("escapes in JSON", "{\"v\":\"", "\\u0001", "\"}"),
        family("line separators", "{\"v\":\"", "\u{2028}", "\"}"),
        family_of("invalid UTF-8", |size| {
            latin1(&between("{\"v\":\"", "\u{ff}", size * 2, "\"}"))
        }),
        family("duplicate keys", "{\"z\":0", ",\"\":0", "}"),
        family("duplicate escaped keys", "{\"z\":0", ",\"\\n\":0", "}"),
        family_of("distinct keys", |size| {
            numbered("{\"z\":0", size, |at, out| write!(out, ",\"{at:x}\":0"), "}")
        }),
        refused_of("upper case", |size| {
            numbered("{\"z\":0", size, |at, out| write!(out, ",\"K{at:X}\":0"), "}")
        }),
        family("unsorted objects", "{\"v\":[0", ",{\"b\":1,\"a\":2}", "]}"),
        family("empty JSON containers", "{\"v\":[0", ",{},[]", "]}"),
        refused("exponents", "{\"v\":[0", ",1e20", "]}"),
        family("small JSON documents", "{\"a\":1}", "{}\n", ""),
        family("long name", "{\"name\":\"", "\\u00e9", "\"}"),
    ]
}

/// Documents of a start, a part as often as it fits, and an end.
fn family(name: &'static str, start: &'static str, part: &'static str, end: &'static str) -> Family {
    family_of(name, move |size| between(start, part, size, end))
}

fn refused(name: &'static str, start: &'static str, part: &'static str, end: &'static str) -> Family {
    refused_of(name, move |size| between(start, part, size, end))
}

fn family_of(name: &'static str, document: impl Fn(usize) -> Vec<u8> + 'static) -> Family {
    Family {
        name,
        document: Box::new(document),
        refused: false,
    }
}

fn refused_of(name: &'static str, document: impl Fn(usize) -> Vec<u8> + 'static) -> Family {
    Family {
        refused: true,
        ..family_of(name, document)
    }
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
