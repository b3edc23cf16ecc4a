//! Paths inside an image, cleaned as Go's `path.Clean` does, and without touching any file system.

/// The components of `path` seen from the image's root, or `None` if it climbs above it.
///
/// Absolute and relative spellings are the same place; `/..` stays at the root as in Go.
pub(crate) fn clean(path: &str) -> Option<Vec<&str>> {
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

/// All proper ancestors of a relative path, the nearest last, without the empty one.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// The folder that holds `path`; empty at the top.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The most that an error repeats of a foreign text.
const MOST_SHOWN_CHARS: usize = 200;

/// A foreign text as errors and logs repeat it: on one line, without anything a terminal would obey, and short.
pub(crate) fn shown(text: &[u8]) -> String {
    let start = &text[..text.len().min(MOST_SHOWN_CHARS * 4)];
    text::line(&String::from_utf8_lossy(start), MOST_SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_follows_go() {
        let cases: &[(&str, Option<&str>)] = &[
            ("configs", Some("configs")),
            ("/configs/", Some("configs")),
            ("./configs//a/./b", Some("configs/a/b")),
            ("configs/../other", Some("other")),
            ("/../x", Some("x")),
            ("..", None),
            ("../x", None),
            ("configs/../../evil", None),
            ("/", Some("")),
            ("", Some("")),
        ];
        for (input, want) in cases {
            assert_eq!(clean(input).map(|parts| parts.join("/")).as_deref(), *want, "{input}");
        }
    }

    #[test]
    fn ancestors_are_listed_from_the_top() {
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(ancestors("a").count(), 0);
        assert_eq!((parent("a/b"), parent("a")), ("a", ""));
    }

    #[test]
    fn foreign_texts_are_shown_on_one_short_line() {
        assert_eq!(shown("a\u{1b}[31m\nb \u{e9}".as_bytes()), "a\\u{1b}[31m\\u{a}b \u{e9}");
        assert_eq!(shown(b"a\xff"), "a\u{fffd}");
        let long = shown(&[b'x'; 100_000]);
        assert_eq!((long.len(), long.ends_with("x...")), (203, true));
    }
}
