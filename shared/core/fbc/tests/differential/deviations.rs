//! Files that catalogd reads otherwise, on purpose. Each row is one of `deviations.md`.

use serde_json::{Deserializer, Value};
use testkit::REFUSED;

/// Names of the deviations, with their reasons.
pub(crate) const DEVIATIONS: &[(&str, &str)] = &[
    ("digits", "Go rounds integers beyond 2^53"),
    (
        "after the end",
        "Go loses what follows the end of a document",
    ),
    ("JSON escape", "JSON has escapes that go-yaml lacks"),
    (
        "timestamp",
        "a timestamp is a string in JSON, whatever its tag promises",
    ),
    (
        "replaced value",
        "a value counts although a later one of the same key replaces it",
    ),
    ("comma in a tag", "YAML 1.2 ends a tag before a comma in []"),
    (
        "separator in []",
        "YAML 1.2 needs white space where go-yaml does not",
    ),
    ("line break of 1.1", "YAML 1.2 has fewer line breaks"),
    ("not YAML 1.2", "the parser knows YAML 1.2 only"),
    ("YAML 1.2", "YAML 1.2 allows it"),
];

/// Returns the deviation that explains why the parser and Go answer differently.
pub(crate) fn find(file: &[u8], ours: &Result<String, String>, go: &str) -> Option<&'static str> {
    let text = &*match file {
        [0xFE, 0xFF, units @ ..] => {
            let units = units
                .as_chunks::<2>()
                .0
                .iter()
                .map(|unit| u16::from_be_bytes(*unit));
            char::decode_utf16(units)
                .map(Result::unwrap_or_default)
                .collect::<String>()
                .into()
        }
        _ => String::from_utf8_lossy(file),
    };
    match ours {
        Ok(_) if go == REFUSED => accepted(text),
        Ok(lines) if same_but_digits(lines, go) => Some("digits"),
        Ok(_) if tag_has(text, &[',']) => Some("comma in a tag"),
        Ok(_) => loses_the_rest(text, go).then_some("after the end"),
        Err(error) => refused(text, error)
            .or_else(|| loses_the_rest(text, go).then_some("after the end"))
            .or_else(|| refused_before_the_end(text)),
    }
}

/// Returns true if the lines of Go are those of the documents, cut off at an end that Go does not
/// go beyond: all of them at `...`, or one of them at the end of a mapping in braces.
fn loses_the_rest(text: &str, go: &str) -> bool {
    let gives_go = |documents: &[&str]| {
        let lines = super::lines(documents.join("\n---").as_bytes());
        lines.is_ok_and(|lines| lines == go || same_but_digits(&lines, go))
    };
    let all: Vec<&str> = text.split("\n---").map(ended).collect();
    gives_go(&all)
        || (0..all.len()).any(|at| {
            all[at].match_indices('}').any(|(end, _)| {
                let mut cut = all.clone();
                cut[at] = &all[at][..=end];
                gives_go(&cut)
            })
        })
}

/// Explains a file of which two documents differ, one of them behind its end.
fn refused_before_the_end(text: &str) -> Option<&'static str> {
    let documents: Vec<&str> = text.split("\n---").map(ended).collect();
    let error = super::lines(documents.join("\n---").as_bytes()).err()?;
    refused(text, &error)
}

/// Returns a document up to its end, with the line break before `...`, which a block scalar may
/// keep.
fn ended(document: &str) -> &str {
    let end = document.find("\n...").map(|at| at + "\n...".len());
    &document[..end.unwrap_or(document.len())]
}

/// Returns true if a tag holds one of these characters, as in `[!a,b]`.
fn tag_has(text: &str, characters: &[char]) -> bool {
    let mut tags = text
        .split('!')
        .skip(1)
        .filter_map(|tag| tag.split_whitespace().next());
    tags.any(|tag| tag.contains(characters))
}

/// Explains a file that only this parser reads.
fn accepted(text: &str) -> Option<&'static str> {
    if text.contains("\\/") || text.contains("\\ud83d\\ude00") {
        return Some("JSON escape");
    }
    // An end without a start is an error to go-yaml.
    let documents = text.trim_start_matches('\u{feff}').split("\n---");
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut starts = documents.filter_map(|document| document.split(['\n', '\r']).find(is_content));
    if starts.any(|line| line.starts_with("...")) {
        return Some("after the end");
    }
    if text.contains("!!timestamp") {
        return Some("timestamp");
    }
    let allowed = [
        "\t", "?", "':", "\":", "\u{feff}", "\u{85}", "\u{2028}", "\u{2029}",
    ];
    let is_allowed = allowed.iter().any(|part| text.contains(part));
    let is_allowed = is_allowed
        || has_long_key(text)
        || has_tight_anchor(text)
        || tag_has(text, &[',', ']', '}', '#']);
    is_allowed.then_some("YAML 1.2")
}

/// Returns true if `{}` spans lines, so that one of its keys may.
fn has_long_key(text: &str) -> bool {
    let braces = text.find('{').zip(text.rfind('}'));
    let inside = braces.and_then(|(start, end)| text.get(start..end));
    inside.is_some_and(|inside| inside.contains(['\n', '\r']))
}

/// Returns true if a list or a mapping follows an anchor without white space, as in `&a[]`.
fn has_tight_anchor(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let mut anchors = text.split('&').skip(1);
    anchors.any(|anchor| anchor.trim_start_matches(is_name).starts_with(['[', '{']))
}

/// Returns true if a colon follows an alias without white space, as in `*a: b`.
fn has_alias_with_colon(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let mut aliases = text.split('*').skip(1);
    aliases.any(|alias| alias.trim_start_matches(is_name).starts_with(':'))
}

/// Explains a file that only Go reads.
fn refused(text: &str, error: &str) -> Option<&'static str> {
    let says = |part: &str| error.contains(part);
    if says("so large an integer cannot be a key") {
        return Some("digits");
    }
    if says("white space is needed between") {
        return Some("separator in []");
    }
    if says("a line separator cannot stand here")
        || text.contains(['\u{85}', '\u{2028}', '\u{2029}'])
    {
        return Some("line break of 1.1");
    }
    if says("cannot be a key") || says("has no form in JSON") {
        return Some("replaced value");
    }
    if says("did not find expected <document start>") {
        return Some("after the end");
    }
    if NOT_YAML_1_2.iter().any(|part| says(part)) {
        return Some("not YAML 1.2");
    }
    // YAML 1.2 takes the colon for a part of the name.
    if says("found unknown anchor") && has_alias_with_colon(text) {
        return Some("not YAML 1.2");
    }
    if tag_has(text, &[',', '[', ']', '{', '}']) {
        return Some("comma in a tag");
    }
    let is_colon = |pair: &[u8]| pair[0] == b':' && b",[]{}".contains(&pair[1]);
    text.as_bytes()
        .windows(2)
        .any(is_colon)
        .then_some("separator in []")
}

/// Errors of the parser for what go-yaml reads.
const NOT_YAML_1_2: &[&str] = &[
    "a line starts with a byte order mark",
    "a BOM must not appear inside a document",
    "an anchor's name may hold",
    "comments must be separated",
    "found unknown escape character",
    "invalid indentation in multiline quoted scalar",
    "did not find expected tag URI",
    "misplaced bracket",
    "plain scalar cannot start with '-'",
    "simple key expected ':'",
    "tab cannot be used as indentation",
    "tabs disallowed within this context",
    "while scanning a tag, did not find expected whitespace",
    "wrongly indented line in block scalar",
];

/// Returns true if the lines differ only in integers beyond 2^53.
fn same_but_digits(ours: &str, go: &str) -> bool {
    let values = |text: &str| {
        Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<Vec<Value>, _>>()
    };
    match (values(ours), values(go)) {
        (Ok(ours), Ok(go)) => {
            ours.len() == go.len() && ours.iter().zip(&go).all(|(ours, go)| same(ours, go))
        }
        _ => false,
    }
}

fn same(ours: &Value, go: &Value) -> bool {
    match (ours, go) {
        (Value::Number(ours), Value::Number(go)) => {
            let rounded = |number: f64| {
                // The last bit is not always right, as `serde_json` reads it.
                let close = |go: f64| (number - go).abs() <= number.abs() * 2.0 * f64::EPSILON;
                number.abs() >= 9_007_199_254_740_992.0 && go.as_f64().is_some_and(close)
            };
            ours == go || ours.as_f64().is_some_and(rounded)
        }
        (Value::Array(ours), Value::Array(go)) => {
            ours.len() == go.len() && ours.iter().zip(go).all(|(ours, go)| same(ours, go))
        }
        (Value::Object(ours), Value::Object(go)) => {
            let mut both = ours.iter().zip(go);
            ours.len() == go.len() && both.all(|((a, ours), (b, go))| a == b && same(ours, go))
        }
        _ => ours == go,
    }
}
