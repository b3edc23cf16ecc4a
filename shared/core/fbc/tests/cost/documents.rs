//! Families of documents that are as expensive as one can make them.

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
        family("alias of a list", "x: &a [", "1,", "]\ny: *a\n").refused(),
        family("many aliases", "x: &a {b: 1, a: 2}\ny: [", "*a,", "]\n").refused(),
        family(
            "alias of a long string",
            "x: &a '",
            "x",
            "'\ny: [*a,*a,*a,*a,*a,*a]\n",
        )
        .refused(),
        family("merges of nothing", "<<: [", "{},", "]\n").refused(),
        family("merges", "<<: [", "{abc: 1, def: 2},", "]\n").refused(),
        family(
            "merges of an alias",
            "x: &a {b: 1, a: 2}\n<<: [",
            "*a,",
            "]\n",
        )
        .refused(),
        family("flow depth", "x: [", &nested("[", "],", 5000), "]\n"),
        family(
            "block depth",
            "x:\n",
            &format!("{}x\n", "- ".repeat(450)),
            "",
        ),
        numbered(
            "anchors never used",
            "x:\n",
            |at| format!("- &a{at} x\n"),
            "",
        )
        .refused(),
        family("one anchor, set often", "x: [", "&a x,", "]\n").refused(),
        family("long key", "? '", "k", "'\n: 1\n"),
        family("comments", "a: 1\n", "# comment\n", ""),
        family(
            "comments, separators",
            "a: \"\u{2028}\"\n",
            "# comment\n",
            "",
        ),
        family("empty documents", "a: 1\n", "---\n", ""),
        family("ended documents", "a: 1\n", "...\n", ""),
        numbered("keys", "", |at| format!("k{at}: {at}\n"), ""),
        family("keys without a value", "v: {", "n,", "}\n").refused(),
        family("nulls", "v: [", "~,", "]\n"),
        family("empty YAML containers", "v: [", "{},[],", "]\n"),
        family("lines of one string", "v: >\n", " text of a line\n", ""),
        family("quoted lines", "v: '", "text of a line\n  ", "'\n"),
        family("escapes in YAML", "v: \"", "\\x01", "\"\n"),
        family("base64", "v: !!binary '", "////", "'\n").refused(),
        family("long number", "v: 1", "0", "\n"),
        family("UTF-16", "v: '", "\u{20ac}", "'\n").encoded(utf16, |size| size * 3 / 2),
        family("next lines", "v: '", "text\u{85}  ", "'\n"),
        numbered(
            "directives",
            "",
            |at| format!("%TAG !{at}! x\r"),
            "--- {}\n",
        )
        .refused(),
        family("CRLF", "v:\r\n", "- a\r\n", ""),
        family(
            "JSON depth",
            "{\"v\":[0",
            &format!(",{}", nested("[", "]", 9000)),
            "]}",
        ),
        family("escapes in JSON", "{\"v\":\"", "\\u0001", "\"}"),
        family("line separators", "{\"v\":\"", "\u{2028}", "\"}"),
        family("invalid UTF-8", "{\"v\":\"", "\u{ff}", "\"}").encoded(latin1, |size| size * 2),
        family("duplicate keys", "{\"z\":0", ",\"\":0", "}"),
        family("duplicate escaped keys", "{\"z\":0", ",\"\\n\":0", "}"),
        numbered(
            "distinct keys",
            "{\"z\":0",
            |at| format!(",\"{at:x}\":0"),
            "}",
        ),
        numbered(
            "upper case",
            "{\"z\":0",
            |at| format!(",\"K{at:X}\":0"),
            "}",
        )
        .refused(),
        family("unsorted objects", "{\"v\":[0", ",{\"b\":1,\"a\":2}", "]}"),
        family("empty JSON containers", "{\"v\":[0", ",{},[]", "]}"),
        family("exponents", "{\"v\":[0", ",1e20", "]}").refused(),
        family("small JSON documents", "{\"a\":1}", "{}\n", ""),
        family("long name", "{\"name\":\"", "\\u00e9", "\"}"),
    ]
}

/// Documents of a start, a part as often as it fits, and an end.
fn family(name: &'static str, start: &'static str, part: &str, end: &'static str) -> Family {
    let part = part.to_owned();
    let document = move |size: usize| {
        let parts = size.saturating_sub(start.len() + end.len()) / part.len();
        [start, &part.repeat(parts), end].concat().into_bytes()
    };
    Family {
        name,
        document: Box::new(document),
        refused: false,
    }
}

/// As `family`, with numbered parts.
fn numbered(
    name: &'static str,
    start: &'static str,
    part: fn(usize) -> String,
    end: &'static str,
) -> Family {
    let document = move |size: usize| {
        let mut text = String::from(start);
        for at in 0.. {
            if text.len() + end.len() >= size {
                break;
            }
            text += &part(at);
        }
        (text + end).into_bytes()
    };
    Family {
        document: Box::new(document),
        ..family(name, start, "", end)
    }
}

impl Family {
    fn refused(self) -> Self {
        Self {
            refused: true,
            ..self
        }
    }

    /// Encodes the text of another size, which has the wanted one then.
    fn encoded(self, encode: fn(&str) -> Vec<u8>, text: fn(usize) -> usize) -> Self {
        let document = move |size| encode(&String::from_utf8_lossy(&(self.document)(text(size))));
        Self {
            document: Box::new(document),
            ..self
        }
    }
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    let inner = close.trim_end_matches(',');
    format!("{}{}{close}", open.repeat(depth), inner.repeat(depth - 1))
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_be_bytes).collect()
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .filter_map(|c| u8::try_from(u32::from(c)).ok())
        .collect()
}
