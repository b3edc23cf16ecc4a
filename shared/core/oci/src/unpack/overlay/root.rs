//! The FBC root inside the image, and the effect of a layer's entry on it.

use crate::clean_path;

/// Start of the name of a whiteout, which hides the rest of the name (OCI image specification,
/// "Whiteouts").
const WHITEOUT: &str = ".wh.";
/// Rest of the name of a whiteout that hides all of its folder.
const OPAQUE: &str = ".wh..opq";

/// Maximum number of components of a path below the FBC root. Each of them costs look-ups of the
/// path up to there, so a deep path costs the square of its length. Catalogs have two to four.
pub(crate) const MAX_DEPTH: usize = 64;

/// The folder of the image that holds the catalog, as components from the image's root. Empty for
/// the whole image.
#[derive(Debug, Clone)]
pub struct Root {
    pub(crate) parts: Vec<String>,
    /// Folders that hold the content, as components from this one. Entries beside them are skipped.
    folders: Vec<Vec<String>>,
    /// True for an archive that is not a layer: names that start with `.wh.` are files as all
    /// others.
    pub(crate) is_plain: bool,
}

/// The effect of an entry on the catalog. Paths are relative to the root.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Hides the root of all lower layers.
    Closes,
    /// Replaces a folder above the root by something else.
    Blocks,
    /// Is an entry for the root itself.
    Root,
    Whiteout(String),
    Opaque(String),
    Entry(String),
    /// Is a whiteout that hides no name, or `.` or `..`.
    Malformed(String),
}

impl Touch {
    /// Returns true for a path of more than [`MAX_DEPTH`] components.
    pub(crate) fn is_deep(&self) -> bool {
        match self {
            Self::Whiteout(path) | Self::Opaque(path) | Self::Entry(path) => {
                path.matches('/').count() >= MAX_DEPTH
            }
            Self::Closes | Self::Blocks | Self::Root | Self::Malformed(_) => false,
        }
    }
}

impl Root {
    /// Creates the root of the folders of an image that are read, which have cleaned components:
    /// the folder around all of them.
    pub fn around(folders: &[Vec<String>]) -> Self {
        let first = folders.first().map(Vec::as_slice).unwrap_or_default();
        let mut depth = first.len();
        while !folders
            .iter()
            .all(|folder| folder.starts_with(&first[..depth]))
        {
            depth -= 1;
        }
        Self {
            parts: first[..depth].to_vec(),
            folders: folders
                .iter()
                .map(|folder| folder[depth..].to_vec())
                .collect(),
            is_plain: false,
        }
    }

    /// Creates the root of an archive that is not a layer of an image. It has no whiteouts.
    pub fn plain(parts: Vec<String>) -> Self {
        Self {
            is_plain: true,
            ..Self::around(&[parts])
        }
    }

    /// Returns the path from the image's root, without a leading slash.
    pub fn path(&self) -> String {
        self.parts.join("/")
    }

    /// Returns the paths of the folders that are read, from the root.
    pub fn folders(&self) -> Vec<String> {
        self.folders.iter().map(|folder| folder.join("/")).collect()
    }

    /// Classifies the entry `name`, a path as a tar archive spells it. Returns `None` for one that
    /// is elsewhere.
    pub(crate) fn touch(&self, name: &str, is_dir: bool) -> Option<Touch> {
        // containerd and catalogd also skip paths that climb out of the image.
        let mut parts = clean_path(name)?;
        let Some(last) = parts.last().copied() else {
            return self.parts.is_empty().then_some(Touch::Root);
        };
        let hidden = last.strip_prefix(WHITEOUT).filter(|_| !self.is_plain);
        let Some(hidden) = hidden else {
            return self.position(&parts, is_dir);
        };
        parts.pop();
        match hidden {
            OPAQUE => self.hides(&parts, Touch::Opaque),
            // Internal files of aufs.
            _ if hidden.starts_with(WHITEOUT) => None,
            "" | "." | ".." => {
                let matters = self.relative(&parts).is_some() || self.is_above(&parts);
                matters.then(|| Touch::Malformed(name.to_owned()))
            }
            _ => {
                parts.push(hidden);
                self.hides(&parts, Touch::Whiteout)
            }
        }
    }

    /// Classifies an entry that is not a whiteout.
    fn position(&self, parts: &[&str], is_dir: bool) -> Option<Touch> {
        match self.relative(parts) {
            Some(path) if path.is_empty() => Some(Touch::Root),
            Some(path) => Some(Touch::Entry(path)),
            None => (self.is_above(parts) && !is_dir).then_some(Touch::Blocks),
        }
    }

    fn hides(&self, parts: &[&str], touch: impl Fn(String) -> Touch) -> Option<Touch> {
        match self.relative(parts) {
            Some(path) if path.is_empty() => Some(Touch::Closes),
            Some(path) => Some(touch(path)),
            None => self.is_above(parts).then_some(Touch::Closes),
        }
    }

    /// Returns `parts` relative to the root if it is the root or below it, and not beside the
    /// folders that are read.
    pub(crate) fn relative<S: AsRef<str>>(&self, parts: &[S]) -> Option<String> {
        let (head, rest) = parts.split_at_checked(self.parts.len())?;
        // Also the folders above a folder that is read: they may become something else, and hide
        // it.
        let mut folders = self.folders.iter();
        let is_read = folders.any(|folder| agree(rest, folder));
        let is_inside = is_read && agree(head, &self.parts);
        is_inside.then(|| rest.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("/"))
    }

    /// Returns true if `parts` is a folder above the root.
    pub(crate) fn is_above<S: AsRef<str>>(&self, parts: &[S]) -> bool {
        parts.len() < self.parts.len() && agree(parts, &self.parts)
    }
}

/// True if two paths have the same parts, as far as the shorter one goes.
fn agree<S: AsRef<str>>(one: &[S], other: &[String]) -> bool {
    one.iter().zip(other).all(|(a, b)| a.as_ref() == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &str, name: &str, is_dir: bool) -> Option<Touch> {
        let plain = root.strip_prefix("plain:");
        let parts = clean_path(plain.unwrap_or(root)).unwrap();
        let parts: Vec<String> = parts.into_iter().map(ToOwned::to_owned).collect();
        let root = if plain.is_some() {
            Root::plain(parts)
        } else {
            Root::around(&[parts])
        };
        root.touch(name, is_dir)
    }

    /// Root, path of an entry, and its effect. A root with `plain` before it is that of an archive
    /// without whiteouts.
    const TOUCHES: &str = r#"
configs configs/a/b.yaml => Some(Entry("a/b.yaml"))
configs ./configs//a => Some(Entry("a"))
configs /configs/../configs/a => Some(Entry("a"))
configs configs => Some(Root)
configs configs2/a => None
configs ../configs/a => None
configs configs/../../evil => None
configs configs/../../configs/evil => None
configs /../configs/a => Some(Entry("a"))
configs ./ => None
configs .wh.configs => Some(Closes)
configs .wh..wh..opq => Some(Closes)
configs configs/.wh..wh..opq => Some(Closes)
configs etc/.wh..wh..opq => None
configs configs/a/.wh..wh..opq => Some(Opaque("a"))
configs configs/a/.wh.b => Some(Whiteout("a/b"))
configs configs/.wh..wh.plnk => None
configs configs/.wh. => Some(Malformed("configs/.wh."))
configs configs/a/.wh... => Some(Malformed("configs/a/.wh..."))
configs etc/.wh. => None
var/lib/fbc var/lib => Some(Blocks)
var/lib/fbc var/lib/ => None
var/lib/fbc var/tmp => None
var/lib/fbc var/.wh.lib => Some(Closes)
var/lib/fbc var/.wh.tmp => None
/ any/thing => Some(Entry("any/thing"))
/ ./ => Some(Root)
/ .wh..wh..opq => Some(Closes)
plain:configs configs/.wh.a => Some(Entry(".wh.a"))
plain:configs configs/a/.wh..wh..opq => Some(Entry("a/.wh..wh..opq"))
plain:configs configs/.wh. => Some(Entry(".wh."))
plain:configs .wh.configs => None
plain:configs configs => Some(Root)
plain:configs configs/../../evil => None
"#;

    #[test]
    fn touch_depends_on_position_of_entry() {
        for row in TOUCHES.trim().lines() {
            let (entry, expected) = row.split_once(" => ").unwrap();
            let (root, name) = entry.split_once(' ').unwrap();
            let touch = touch(root, name, name.ends_with('/'));
            assert_eq!(format!("{touch:?}"), expected, "{row}");
        }
    }

    #[test]
    fn path_of_most_components_is_not_deep() {
        let path = |folders: usize| format!("configs/{}f", "a/".repeat(folders));
        let is_deep =
            |root, path: &str| touch(root, path, false).is_some_and(|touch| touch.is_deep());
        assert!(!is_deep("configs", &path(MAX_DEPTH - 1)));
        assert!(is_deep("configs", &path(MAX_DEPTH)));
        assert!(!is_deep("other", &path(MAX_DEPTH)));
    }
}
