//! Header fields as a client may send them: each line of the input is one.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The lines of `input` as fields of that name; `None` if one is no field value.
pub(crate) fn fields(name: &HeaderName, input: &[u8]) -> Option<HeaderMap> {
    let values = input.split(|byte| *byte == b'\n').map(HeaderValue::from_bytes);
    let values = values.map(|value| Some((name.clone(), value.ok()?)));
    values.collect()
}

/// All values of a field as one list (RFC 9110, section 5.3), if they are text.
pub(crate) fn joined(fields: &HeaderMap) -> Option<String> {
    let values: Option<Vec<&str>> = fields.values().map(|value| value.to_str().ok()).collect();
    Some(values?.join(", "))
}
