//! Manifests inside a bundle (`olm.bundle.object`) as JSON.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    go::{self, Wrong},
    json,
};

/// Returns the object in the value of a property `olm.bundle.object`. JSON stays as it is, and YAML becomes JSON. `data` is that of the
/// property before: opm decodes each of them into the same variable, so one without data repeats it.
pub(crate) fn read_object(value: &str, data: &mut Vec<u8>) -> Result<String, Wrong> {
    if let [Some(own)] = go::fields(value, &["data"])? {
        *data = go::bytes(own)?;
    }
    // apimachinery takes such a text for JSON.
    let json = std::str::from_utf8(data).ok();
    if let Some(json) = json.filter(|text| text.trim_start().starts_with('{')) {
        return Ok(json.to_owned());
    }
    let json = fbc::yaml_to_json(data).map_err(|error| error.to_string())?;
    let json = String::from_utf8(json).map_err(|error| error.to_string())?;
    let mut out = String::with_capacity(json.len());
    json::escape_html(&json, &mut out);
    Ok(out)
}

/// Returns true for an object whose kind is ClusterServiceVersion. opm reads JSON as YAML here.
pub(crate) fn is_csv(object: &str) -> bool {
    if !is_go_yaml(object) {
        return false;
    }
    match kind(object) {
        Ok(kind) => kind == "ClusterServiceVersion",
        // What starts like JSON may still be YAML.
        Err(_) => {
            let json = fbc::yaml_to_json(object.as_bytes()).ok();
            let json = json.and_then(|json| String::from_utf8(json).ok());
            json.is_some_and(|json| kind(&json).is_ok_and(|kind| kind == "ClusterServiceVersion"))
        }
    }
}

fn kind(json: &str) -> Result<Cow<'_, str>, Wrong> {
    let mut kind: Option<&RawValue> = None;
    go::entries(json, |key, value| {
        if key == "kind" {
            kind = Some(value);
        }
        Ok(())
    })?;
    // Any other value than a text counts as none.
    Ok(go::text(kind).unwrap_or_default())
}

/// Returns false for JSON that go-yaml v2 does not read: with `\/`, with a surrogate pair, or with a character that is not
/// printable.
fn is_go_yaml(json: &str) -> bool {
    let printable =
        |char| matches!(char, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    let mut escapes = json.split('\\').skip(1);
    let mut readable = true;
    while let Some(escape) = escapes.next() {
        match escape.as_bytes() {
            // An escaped backslash: the next part is no escape.
            [] => drop(escapes.next()),
            [b'/', ..] | [b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..] => readable = false,
            _ => {}
        }
    }
    readable && json.chars().all(printable)
}
