//! Symlinks and hard links, followed inside the complete catalog.

use super::{Depth, NodeKind, Overlay, Root};
use crate::{LimitExceeded, NamedLimit, clean_path, path::parent, shown};

/// Maximum number of links that one link may lead through, as in Linux.
const MAX_HOPS: usize = 40;

/// The reason for which a link leads to no file of the catalog.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LinkError {
    /// A link to a target that does not exist.
    #[error("its target {0} does not exist")]
    Broken(String),
    /// The target is outside the FBC root, where no file is read.
    #[error("its target {0} lies outside the catalog's directory")]
    Outside(String),
    /// A link to a directory. catalogd cannot read such a link either.
    #[error("its target {0} is a directory")]
    Directory(String),
    /// A link that leads to itself, or through too many others.
    #[error("its target {0} leads in a circle")]
    Cycle(String),
    /// A hard link to content that an upper layer hides. That content was not read.
    #[error(
        "its target {0} was replaced or removed by an upper layer: rebuild the image with fewer layers"
    )]
    Replaced(String),
}

/// A link and the file that it leads to.
type ResolvedLink<'a> = (&'a str, Result<String, LinkError>);

/// Follows the links of one catalog.
pub(crate) struct LinkResolver<'a> {
    overlay: &'a Overlay,
    root: &'a Root,
    /// Number of folders and links that were visited.
    steps: u64,
}

impl<'a> LinkResolver<'a> {
    pub(crate) fn new(overlay: &'a Overlay, root: &'a Root) -> Self {
        let steps = 0;
        Self {
            overlay,
            root,
            steps,
        }
    }

    /// Returns every link with the file that it leads to, in byte order of the links. `max_steps`
    /// limits the work of all links together, because each may lead through forty others.
    pub(crate) fn resolve(
        &mut self,
        max_steps: u64,
    ) -> Result<Vec<ResolvedLink<'a>>, LimitExceeded> {
        let limit = NamedLimit::new("linkSteps", max_steps);
        let mut links = Vec::new();
        for (path, node) in &self.overlay.nodes {
            if matches!(node.kind, NodeKind::Symlink(_) | NodeKind::HardLink(_)) {
                links.push(path.as_str());
            }
        }
        // The order of a hash table is random, and the first broken link is the one that is
        // reported.
        links.sort_unstable();
        let mut resolved = Vec::new();
        for path in links {
            let target = self.follow(path, path, 0);
            limit.check(self.steps, || {
                format!("the links up to {}", shown(path.as_bytes()))
            })?;
            resolved.push((path, target));
        }
        Ok(resolved)
    }

    /// Returns the file at `path`, which was reached under the name `link`. A relative symlink
    /// starts at the folder of `link`, even if a hard link gives it a second name.
    fn follow(&mut self, link: &str, path: &str, hops: usize) -> Result<String, LinkError> {
        self.steps += 1;
        let Some(node) = self.overlay.nodes.get(path) else {
            return Err(LinkError::Broken(shown(path.as_bytes())));
        };
        match &node.kind {
            NodeKind::File => Ok(path.to_owned()),
            NodeKind::Dir | NodeKind::Special(_) => Err(LinkError::Broken(shown(path.as_bytes()))),
            NodeKind::HardLink(target) | NodeKind::Symlink(target) if hops == MAX_HOPS => {
                Err(LinkError::Cycle(shown(target.as_bytes())))
            }
            NodeKind::HardLink(target) => self.hard(link, target, node.depth, hops + 1),
            NodeKind::Symlink(target) => self.symbolic(link, target, hops + 1),
        }
    }

    /// Follows a hard link. It means the content of its own layer or a lower one, never a newer
    /// content.
    fn hard(
        &mut self,
        link: &str,
        target: &str,
        depth: Depth,
        hops: usize,
    ) -> Result<String, LinkError> {
        let inside = clean_path(target).and_then(|parts| self.root.relative(&parts));
        let Some(path) = inside else {
            return Err(LinkError::Outside(shown(target.as_bytes())));
        };
        match self.overlay.nodes.get(&path) {
            Some(node) if node.depth >= depth => self.follow(link, &path, hops),
            None if !self.overlay.gone.contains_key(&path)
                && self.overlay.is_visible(Depth::MAX, &path) =>
            {
                Err(LinkError::Broken(shown(target.as_bytes())))
            }
            Some(_) | None => Err(LinkError::Replaced(shown(target.as_bytes()))),
        }
    }

    fn symbolic(&mut self, link: &str, target: &str, mut hops: usize) -> Result<String, LinkError> {
        let folder = parent(link).split('/').filter(|part| !part.is_empty());
        let mut here: Vec<&str> = self
            .root
            .parts
            .iter()
            .map(String::as_str)
            .chain(folder)
            .collect();
        // Parts of targets that are still to be walked, the next one last.
        let mut ahead = Vec::new();
        turn(target, &mut here, &mut ahead);
        while let Some(part) = ahead.pop() {
            // The parent of the image's root is the root, as in Unix.
            if part == ".." {
                here.pop();
            } else {
                here.push(part);
            }
            self.steps += 1;
            let Some(path) = self.root.relative(&here) else {
                // A target such as `/configs/x` passes folders above the root on its way.
                if self.root.is_above(&here) {
                    continue;
                }
                return Err(LinkError::Outside(shown(target.as_bytes())));
            };
            match self.overlay.nodes.get(&path).map(|node| &node.kind) {
                Some(NodeKind::Symlink(_)) if hops >= MAX_HOPS => {
                    return Err(LinkError::Cycle(shown(target.as_bytes())));
                }
                Some(NodeKind::Symlink(next)) => {
                    hops += 1;
                    here.pop();
                    turn(next, &mut here, &mut ahead);
                }
                Some(_) if ahead.is_empty() => return self.follow(&path, &path, hops),
                None if path.is_empty() || self.overlay.dirs.contains_key(&path) => {}
                _ => return Err(LinkError::Broken(shown(target.as_bytes()))),
            }
        }
        Err(LinkError::Directory(shown(target.as_bytes())))
    }
}

/// Turns from the folder `here` to the target of a symlink in it.
fn turn<'a>(target: &'a str, here: &mut Vec<&'a str>, ahead: &mut Vec<&'a str>) {
    if target.starts_with('/') {
        here.clear();
    }
    ahead.extend(target.rsplit('/').filter(|part| !matches!(*part, "" | ".")));
}
