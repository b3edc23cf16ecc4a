//! Paths inside an image, without access to any file system.

/// Maximum length of a foreign text in an error, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// Returns the components of `path` from the image's root, cleaned as Go's `path.Clean` does.
/// Returns `None` for a relative path that climbs above the root; `/..` stays at the root as in Go.
///
/// ```
/// use oci::clean_path;
///
/// assert_eq!(clean_path("/configs//a/../b/"), Some(vec!["configs", "b"]));
/// assert_eq!(clean_path("configs/../../evil"), None);
/// ```
pub fn clean_path(path: &str) -> Option<Vec<&str>> {
    let absolute = path.starts_with('/');
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts.pop().is_none() && !absolute => return None,
            "" | "." | ".." => {}
            part => parts.push(part),
        }
    }
    Some(parts)
}

/// Returns all proper ancestors of a relative path, from the top, without the empty path.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Returns the folder of `path`; empty at the top.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// Returns a foreign text for errors and logs: one line without terminal escapes, at most 200
/// characters.
pub fn shown(text: &[u8]) -> String {
    let start = &text[..text.len().min(MAX_SHOWN_CHARS * 4)];
    model::text::line(&String::from_utf8_lossy(start), MAX_SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_listed_from_the_top() {
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(ancestors("a").count(), 0);
        assert_eq!((parent("a/b"), parent("a")), ("a", ""));
    }

    #[test]
    fn shown_returns_one_short_line() {
        assert_eq!(
            shown("a\u{1b}[31m\nb \u{e9}".as_bytes()),
            "a\\u{1b}[31m\\u{a}b \u{e9}"
        );
        assert_eq!(shown(b"a\xff"), "a\u{fffd}");
        let long = shown(&[b'x'; 100_000]);
        assert_eq!((long.len(), long.ends_with("x...")), (203, true));
    }
}
