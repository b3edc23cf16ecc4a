//! JSON and text as Go writes them: strings in JSON, quoted strings in messages, and lines as
//! `google.protobuf.Struct`.

use std::fmt::Write;

use prost_types::{Struct, Value, value::Kind};
use serde_json::Value as Json;

use crate::AnswerError;

/// Appends JSON with `<`, `>`, `&` and the two line ends of Unicode escaped, as Go's `json.Marshal`
/// writes it.
pub(crate) fn escape_html(json: &str, out: &mut String) {
    escape(json, true, out);
}

/// Appends a string as `json.Marshal` writes it.
pub(crate) fn string(text: &str, out: &mut String) {
    escape_html(&quote(text), out);
}

/// Returns a string as Go's encoder writes it with `SetEscapeHTML(false)`.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    escape(&quote(text), false, &mut out);
    out
}

fn quote(text: &str) -> String {
    // A string has a form in JSON always.
    serde_json::to_string(text).unwrap_or_default()
}

fn escape(json: &str, html: bool, out: &mut String) {
    let escaped: &[char] = match html {
        true => &['<', '>', '&', '\u{2028}', '\u{2029}'],
        false => &['\u{2028}', '\u{2029}'],
    };
    let mut rest = json;
    while let Some(at) = rest.find(escaped) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let mut chars = from.chars();
        if let Some(char) = chars.next() {
            // Writing to a string never fails.
            let _ = write!(out, "\\u{:04x}", u32::from(char));
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

/// Returns a name as Go's `%q` writes it.
pub(crate) fn go_quoted(text: &str) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        let code = u32::from(char);
        let _ = match char {
            '"' | '\\' => write!(out, "\\{char}"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            '\u{7}' => write!(out, "\\a"),
            '\u{8}' => write!(out, "\\b"),
            '\u{b}' => write!(out, "\\v"),
            '\u{c}' => write!(out, "\\f"),
            ' '..='~' => write!(out, "{char}"),
            _ if char.is_ascii() => write!(out, "\\x{code:02x}"),
            // Rust escapes about the same characters of Unicode.
            _ if char.escape_debug().count() == 1 => write!(out, "{char}"),
            _ if code > 0xffff => write!(out, "\\U{code:08x}"),
            _ => write!(out, "\\u{code:04x}"),
        };
    }
    out.push('"');
    out
}

/// Returns the line of a Meta as a message. Numbers become floating point, as in every
/// `google.protobuf.Struct`.
///
/// # Errors
/// Fails if the line is no object, or nested deeper than 128 levels.
pub fn meta_struct(line: &[u8]) -> Result<Struct, AnswerError> {
    let fields = serde_json::from_slice(line).map_err(|error| AnswerError::Bundle {
        bundle: "custom schema".to_owned(),
        reason: error.to_string(),
    });
    fields.map(object)
}

fn object(fields: serde_json::Map<String, Json>) -> Struct {
    Struct {
        fields: fields
            .into_iter()
            .map(|(name, field)| (name, value(field)))
            .collect(),
    }
}

fn value(json: Json) -> Value {
    match json {
        Json::Null => Kind::NullValue(0).into(),
        Json::Bool(value) => value.into(),
        // Every number of JSON has a nearest floating-point number.
        Json::Number(number) => number.as_f64().unwrap_or(f64::NAN).into(),
        Json::String(text) => text.into(),
        Json::Array(values) => values.into_iter().map(value).collect::<Vec<_>>().into(),
        Json::Object(fields) => Kind::StructValue(object(fields)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_quoted_escapes_what_is_not_printable() {
        for (text, expected) in [
            ("a'b", r#""a'b""#),
            ("a\"\\\n\u{7}\u{0}\u{7f}", r#""a\"\\\n\a\x00\x7f""#),
            ("ä\u{feff}\u{e0001}", r#""ä\ufeff\U000e0001""#),
        ] {
            assert_eq!(go_quoted(text), expected);
        }
    }
}
