use http::{HeaderMap, StatusCode, header::IF_NONE_MATCH};

use crate::field::{fields, joined};
use crate::site::{Site, with_site};

/// Paths of documents with one entity tag each.
const PATHS: [&str; 2] = ["/catalogs/demo/content-hash", "/catalogs/demo/packages/demo-queue"];

/// Sends an `If-None-Match`: the answer is 304 exactly if the list holds the current tag.
///
/// # Panics
/// If it is not.
pub(crate) fn if_none_match(input: &[u8]) {
    let Some(fields) = fields(&IF_NONE_MATCH, input) else {
        return;
    };
    with_site(|site| PATHS.iter().for_each(|path| check(site, path, &fields)));
}

fn check(site: &Site, path: &str, fields: &HeaderMap) {
    let whole = site.get(path, HeaderMap::new());
    let tag = whole.header("etag").trim_matches('"').to_owned();
    let answer = site.get(path, fields.clone());
    assert!(!tag.is_empty() && answer.header("etag") == whole.header("etag"));
    match answer.status {
        StatusCode::OK => assert_eq!(answer.body, whole.body),
        StatusCode::NOT_MODIFIED => assert_eq!(answer.bytes(), b""),
        other => panic!("{other} to {fields:?}"),
    }
    let matched = answer.status == StatusCode::NOT_MODIFIED;
    let Some(field) = joined(fields) else { return };
    match tags(&field) {
        _ if field.trim_matches([' ', '\t']) == "*" => assert!(matched),
        Some(tags) => assert_eq!(matched, tags.contains(&tag), "{fields:?}"),
        // A malformed field may be read generously, but not as a tag that it does not hold.
        None => assert!(!matched || field.contains(&format!("\"{tag}\"")) || field.contains('*')),
    }
}

/// Parses the opaque tags by the grammar (RFC 9110, sections 8.8.3 and 13.1.2); `None` if the field is malformed.
fn tags(field: &str) -> Option<Vec<String>> {
    let space = [' ', '\t'];
    let mut tags = Vec::new();
    let mut rest = field.trim_matches(space);
    while !rest.is_empty() {
        if let Some(more) = rest.strip_prefix(',') {
            rest = more.trim_start_matches(space);
            continue;
        }
        let quoted = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
        let (tag, more) = quoted.split_once('"')?;
        let grammatical = tag.bytes().all(|byte| byte == 0x21 || (0x23..=0x7e).contains(&byte));
        rest = more.trim_start_matches(space);
        if !grammatical || !(rest.is_empty() || rest.starts_with(',')) {
            return None;
        }
        tags.push(tag.to_owned());
    }
    Some(tags)
}
