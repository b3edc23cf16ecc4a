//! Errors of YAML files in the words of YAML.

/// Returns an error of a YAML parser in the words of YAML: it says the kind to write, and the kind
/// that is there.
///
/// ```
/// use model::yaml::plain_error;
///
/// assert_eq!(plain_error("invalid type: map, expected a sequence"), "write a list, not a mapping");
/// assert_eq!(plain_error("expected mapping start"), "write a mapping");
/// assert_eq!(plain_error("unknown variant `a`, expected `b` or `c`"), "write b or c, not `a`");
/// assert_eq!(plain_error("unknown field `a`"), "unknown field `a`");
/// ```
pub fn plain_error(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("invalid type: ")
        && let Some((found, wanted)) = rest.split_once(", expected ")
    {
        let wanted = kind_in_words(wanted).unwrap_or(wanted);
        let found = kind_in_words(found).unwrap_or_else(|| value_of(found));
        return format!("write {wanted}, not {found}");
    }
    if let Some(rest) = text.strip_prefix("unknown variant ")
        && let Some((found, wanted)) = rest.split_once(", expected ")
    {
        return format!("write {}, not {found}", wanted.replace('`', ""));
    }
    let wanted = text
        .strip_prefix("expected ")
        .or_else(|| text.strip_prefix("invalid "));
    if let Some(wanted) = wanted.and_then(kind_in_words) {
        return format!("write {wanted}");
    }
    text.to_owned()
}

/// Returns the value of a scalar, which stands after its kind: string "a", integer `1`, boolean
/// `true`.
fn value_of(scalar: &str) -> &str {
    match scalar.split_once(' ') {
        Some((_, value)) => value.trim_matches('`'),
        None => scalar,
    }
}

/// Returns the YAML word for a kind of value in the errors of a parser.
fn kind_in_words(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "a sequence" | "sequence" | "sequence start" => "a list",
        "a map" | "map" | "mapping start" => "a mapping",
        "a string" | "string scalar" => "a text",
        "path string" => "a path",
        "a boolean" | "boolean" => "true or false",
        "null" | "unit value" => "nothing",
        "i64" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        _ if kind.starts_with("struct ") => "a mapping",
        _ => return None,
    })
}
