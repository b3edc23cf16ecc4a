//! Versions and ranges as the Go library blang/semver v4 reads them. The crate `semver` refuses ranges that blang accepts
//! and the reverse, so it cannot decide in its place.

/// Maximum length of a release, in bytes.
const RELEASE_MAX: usize = 20;

/// Returns true for a version: three numbers, then optionally a pre-release and build metadata.
pub(crate) fn is_version(text: &str) -> bool {
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (rest, build) = split(rest, '+');
    let (patch, pre) = split(rest, '-');
    is_number(major)
        && is_number(minor)
        && is_number(patch)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre_release))
        && build.is_none_or(|build| build.split('.').all(is_identifier))
}

/// Returns true if the version has build metadata.
pub(crate) fn has_build(version: &str) -> bool {
    version.contains('+')
}

/// Returns true for the release of a bundle: the identifiers of a pre-release.
pub(crate) fn is_release(text: &str) -> bool {
    text.len() <= RELEASE_MAX && text.split('.').all(is_pre_release)
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_number(text: &str) -> bool {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits && (text == "0" || !text.starts_with('0')) && text.parse::<u64>().is_ok()
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_pre_release(text: &str) -> bool {
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => is_number(text),
        false => is_identifier(text),
    }
}

/// Returns true for a range: comparisons joined by spaces, and alternatives joined by `||`.
pub(crate) fn is_range(text: &str) -> bool {
    let parts = parts(text);
    let ends = [parts.first(), parts.last()];
    // Two `||` in a row are accepted: the alternative between them has no comparison.
    let joined = ends.iter().all(|end| end.is_some_and(|end| end != "||"));
    joined
        && parts
            .iter()
            .filter(|part| *part != "||")
            .all(|part| is_comparison(part))
}

/// Splits at spaces, but not at those after an operator. A part of one character is lost, as in blang.
fn parts(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut start, mut last) = (0, 0);
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b' ' {
            last = *byte;
        } else if !matches!(last, b'>' | b'<' | b'=') {
            if start + 1 < at {
                parts.push(text[start..at].replace(' ', ""));
            }
            start = at + 1;
        }
    }
    if start + 1 < bytes.len() {
        parts.push(text[start..].replace(' ', ""));
    }
    parts
}

fn is_comparison(part: &str) -> bool {
    let Some((operator, version)) = operator(part) else {
        return false;
    };
    if part.contains('x') {
        return is_wildcard(operator, version);
    }
    let known = matches!(operator, "" | "=" | "==" | "!" | "!=" | ">" | ">=" | "<" | "<=");
    known && is_version(version)
}

/// Splits a comparison before its first digit.
fn operator(part: &str) -> Option<(&str, &str)> {
    let at = part.find(char::is_numeric)?;
    Some((part[..at].trim(), &part[at..]))
}

/// Returns true for a comparison with an `x`. blang replaces it by a zero, and counts the number before it up where the
/// operator needs the end of the range.
fn is_wildcard(operator: &str, version: &str) -> bool {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    let flat = match flat.split('.').count() {
        2 => flat + ".0",
        _ => flat,
    };
    let is_last = version.rsplit('.').next() == Some("x");
    let end = match version.split('.').count() {
        3 if is_last => next(&flat, 1),
        2 if is_last => next(&flat, 0),
        _ => None,
    };
    let end = end.is_some_and(|end| is_version(&end));
    match operator {
        ">" | "<=" => end,
        "" | "=" | "==" | "!" | "!=" => end && is_version(&flat),
        // blang drops an unknown operator before an `x`.
        _ => is_version(&flat),
    }
}

/// Returns the version with one of its numbers counted up.
fn next(version: &str, number: usize) -> Option<String> {
    let mut parts: Vec<String> = version.split('.').map(str::to_owned).collect();
    let part = parts.get_mut(number)?;
    *part = part.parse::<i64>().ok()?.wrapping_add(1).to_string();
    Some(parts.join("."))
}
