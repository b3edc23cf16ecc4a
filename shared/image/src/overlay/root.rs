//! The FBC root inside the image, and what an entry of a layer means to it.

use crate::path::clean;

const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

/// The folder of the image that holds the catalog; empty for the whole image.
#[derive(Debug, Clone)]
pub(crate) struct Root(Vec<String>);

/// What an entry does to the catalog. Paths are relative to the root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Nothing: it lies elsewhere.
    Nothing,
    /// The root, or a folder above it, ends here for lower layers.
    Closes,
    /// Something else than a folder stands where one above the root would be.
    Blocks,
    /// The root itself, as whatever the entry is.
    Root,
    Whiteout(String),
    Opaque(String),
    Entry(String),
    /// A whiteout without a name.
    Malformed(String),
}

impl Root {
    pub(crate) fn new(parts: Vec<String>) -> Self {
        Self(parts)
    }

    /// The root as a path from the image's root, without a slash in front.
    pub(crate) fn path(&self) -> String {
        self.0.join("/")
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.0
    }

    /// Whether an entry whose name is not UTF-8 could matter, judged by what can be read of it.
    pub(crate) fn may_hold(&self, name: &[u8]) -> bool {
        !matches!(self.touch(&String::from_utf8_lossy(name), true), Touch::Nothing)
    }

    /// Classifies the entry `name`, a path as a tar archive spells it.
    pub(crate) fn touch(&self, name: &str, is_dir: bool) -> Touch {
        // What climbs out of the image is dropped, as containerd and catalogd do.
        let Some(mut parts) = clean(name) else {
            return Touch::Nothing;
        };
        let Some(last) = parts.last().copied() else {
            return if self.0.is_empty() { Touch::Root } else { Touch::Nothing };
        };
        if last == OPAQUE {
            parts.pop();
            return self.hides(&parts, Touch::Opaque);
        }
        if last.starts_with(".wh..wh.") {
            // Bookkeeping of aufs, never content.
            return Touch::Nothing;
        }
        if let Some(hidden) = last.strip_prefix(WHITEOUT) {
            parts.pop();
            return self.whiteout(parts, hidden, name);
        }
        match self.relative(&parts) {
            Some(path) if path.is_empty() => Touch::Root,
            Some(path) => Touch::Entry(path),
            None if self.is_above(&parts) && !is_dir => Touch::Blocks,
            None => Touch::Nothing,
        }
    }

    fn whiteout<'a>(&self, mut parts: Vec<&'a str>, hidden: &'a str, name: &str) -> Touch {
        if matches!(hidden, "" | "." | "..") {
            let matters = self.relative(&parts).is_some() || self.is_above(&parts);
            return if matters {
                Touch::Malformed(name.to_owned())
            } else {
                Touch::Nothing
            };
        }
        parts.push(hidden);
        self.hides(&parts, Touch::Whiteout)
    }

    fn hides(&self, parts: &[&str], touch: impl Fn(String) -> Touch) -> Touch {
        match self.relative(parts) {
            Some(path) if path.is_empty() => Touch::Closes,
            Some(path) => touch(path),
            None if self.is_above(parts) => Touch::Closes,
            None => Touch::Nothing,
        }
    }

    /// `parts` relative to the root, if it is the root or lies under it.
    pub(crate) fn relative<S: AsRef<str>>(&self, parts: &[S]) -> Option<String> {
        let (head, rest) = parts.split_at_checked(self.0.len())?;
        let same = head.iter().zip(&self.0).all(|(a, b)| a.as_ref() == b);
        same.then(|| rest.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("/"))
    }

    /// Whether `parts` is a folder above the root.
    pub(crate) fn is_above<S: AsRef<str>>(&self, parts: &[S]) -> bool {
        parts.len() < self.0.len() && parts.iter().zip(&self.0).all(|(a, b)| a.as_ref() == b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &str, name: &str, is_dir: bool) -> Touch {
        Root::new(clean(root).unwrap().into_iter().map(ToOwned::to_owned).collect()).touch(name, is_dir)
    }

    #[test]
    fn entries_are_told_apart_by_where_they_lie() {
        let entry = |path: &str| Touch::Entry(path.to_owned());
        for (root, name, want) in [
            ("configs", "configs/a/b.yaml", entry("a/b.yaml")),
            ("configs", "./configs//a", entry("a")),
            ("configs", "/configs/../configs/a", entry("a")),
            ("configs", "configs", Touch::Root),
            ("configs", "configs2/a", Touch::Nothing),
            ("configs", "../configs/a", Touch::Nothing),
            ("configs", "configs/../../evil", Touch::Nothing),
            ("var/lib/fbc", "var/lib", Touch::Blocks),
            ("var/lib/fbc", "var/tmp", Touch::Nothing),
            ("var/lib/fbc", "var/.wh.lib", Touch::Closes),
            ("var/lib/fbc", "var/.wh.tmp", Touch::Nothing),
            ("configs", ".wh.configs", Touch::Closes),
            ("configs", ".wh..wh..opq", Touch::Closes),
            ("configs", "configs/.wh..wh..opq", Touch::Closes),
            ("configs", "etc/.wh..wh..opq", Touch::Nothing),
            ("configs", "configs/a/.wh..wh..opq", Touch::Opaque("a".to_owned())),
            ("configs", "configs/a/.wh.b", Touch::Whiteout("a/b".to_owned())),
            ("configs", "configs/.wh..wh.plnk", Touch::Nothing),
            ("configs", "configs/.wh.", Touch::Malformed("configs/.wh.".to_owned())),
            (
                "configs",
                "configs/a/.wh...",
                Touch::Malformed("configs/a/.wh...".to_owned()),
            ),
            ("configs", "etc/.wh.", Touch::Nothing),
            ("/", "any/thing", entry("any/thing")),
            ("/", "./", Touch::Root),
            ("/", ".wh..wh..opq", Touch::Closes),
        ] {
            assert_eq!(touch(root, name, false), want, "{root} {name}");
        }
    }

    #[test]
    fn a_folder_above_the_root_is_nothing_special() {
        assert_eq!(touch("var/lib/fbc", "var/lib/", true), Touch::Nothing);
        assert_eq!(touch("configs", "./", true), Touch::Nothing);
    }
}
