//! Symlinks and hard links, followed inside the assembled catalog once all layers are known.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::error::{Error, Limit};
use crate::overlay::{Depth, Kind, Overlay, Root};
use crate::path::{clean, parent, shown};

/// Linux gives up after as many.
const MOST_HOPS: usize = 40;

/// Why a link leads to no file of the catalog.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LinkError {
    /// Nothing is there.
    #[error("its target {0} does not exist")]
    Broken(String),
    /// It leads out of the FBC root, of which nothing is read.
    #[error("its target {0} lies outside the catalog's directory")]
    Outside(String),
    /// It leads to a directory, which catalogd cannot read either.
    #[error("its target {0} is a directory")]
    Directory(String),
    /// It leads to itself.
    #[error("its target {0} leads in a circle")]
    Cycle(String),
    /// A hard link to content that an upper layer replaced or removed. The content passed by unread.
    #[error("its target {0} was replaced or removed by an upper layer: rebuild the image with fewer layers")]
    Replaced(String),
}

/// A link and the file that it leads to.
type Resolved<'a> = (&'a str, Result<String, LinkError>);

/// Follows the links of one catalog.
pub(crate) struct Links<'a> {
    overlay: &'a Overlay,
    root: &'a Root,
    most_steps: u64,
    steps: Cell<u64>,
}

impl<'a> Links<'a> {
    /// `most_steps` bounds the work of all links together: each may lead through forty others.
    pub(crate) fn new(overlay: &'a Overlay, root: &'a Root, most_steps: u64) -> Self {
        Self {
            overlay,
            root,
            most_steps,
            steps: Cell::new(0),
        }
    }

    /// Every link with the file it leads to, in byte order of the links.
    pub(crate) fn resolve(&self) -> Result<Vec<Resolved<'a>>, Error> {
        let nodes = self.overlay.nodes.iter();
        let links = nodes.filter(|(_, node)| matches!(node.kind, Kind::Symlink(_) | Kind::Hardlink(_)));
        let mut links: Vec<&str> = links.map(|(path, _)| path.as_str()).collect();
        links.sort_unstable();
        let resolved = links.into_iter().map(|path| {
            let target = self.follow(path, path, 0);
            self.within_bounds(path).map(|()| (path, target))
        });
        resolved.collect()
    }

    fn within_bounds(&self, path: &str) -> Result<(), Error> {
        if self.steps.get() <= self.most_steps {
            return Ok(());
        }
        Err(Error::Limit(Limit {
            name: "linkSteps",
            limit: self.most_steps,
            place: format!("the links up to {}", shown(path.as_bytes())),
        }))
    }

    fn count_step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    /// What stands at `path`, reached under the name `link`: a symlink counts from the folder that it is read in, also
    /// one that is there under a second name.
    fn follow(&self, link: &str, path: &str, hops: usize) -> Result<String, LinkError> {
        self.count_step();
        let Some(node) = self.overlay.nodes.get(path) else {
            return Err(LinkError::Broken(shown(path.as_bytes())));
        };
        match &node.kind {
            Kind::File => Ok(path.to_owned()),
            Kind::Other => Err(LinkError::Broken(shown(path.as_bytes()))),
            Kind::Hardlink(target) | Kind::Symlink(target) if hops == MOST_HOPS => {
                Err(LinkError::Cycle(shown(target.as_bytes())))
            }
            Kind::Hardlink(target) => self.hard(link, target, node.depth, hops + 1),
            Kind::Symlink(target) => self.symbolic(link, target, hops + 1),
        }
    }

    /// A hard link means the content as it was when its layer was made, so a newer one will not do.
    fn hard(&self, link: &str, target: &str, depth: Depth, hops: usize) -> Result<String, LinkError> {
        let outside = || LinkError::Outside(shown(target.as_bytes()));
        let path = self
            .root
            .relative(&clean(target).ok_or_else(outside)?)
            .ok_or_else(outside)?;
        match self.overlay.nodes.get(&path) {
            Some(node) if node.depth >= depth => self.follow(link, &path, hops),
            None if !self.overlay.gone.contains_key(&path) && self.overlay.is_visible(Depth::MAX, &path) => {
                Err(LinkError::Broken(shown(target.as_bytes())))
            }
            Some(_) | None => Err(LinkError::Replaced(shown(target.as_bytes()))),
        }
    }

    fn symbolic(&self, link: &str, target: &str, hops: usize) -> Result<String, LinkError> {
        let mut walk = Walk::from(self.root, parent(link), target);
        let mut hops = hops;
        while let Some(part) = walk.ahead.pop_front() {
            walk.step(part);
            self.count_step();
            let Some(path) = self.root.relative(&walk.here) else {
                if self.root.is_above(&walk.here) {
                    continue;
                }
                return Err(LinkError::Outside(shown(target.as_bytes())));
            };
            match self.overlay.nodes.get(&path).map(|node| &node.kind) {
                Some(Kind::Symlink(_)) if hops >= MOST_HOPS => return Err(LinkError::Cycle(shown(target.as_bytes()))),
                Some(Kind::Symlink(next)) => {
                    hops += 1;
                    walk.detour(next);
                }
                Some(_) if walk.ahead.is_empty() => return self.follow(&path, &path, hops),
                None if path.is_empty() || self.overlay.dirs.contains_key(&path) => {}
                _ => return Err(LinkError::Broken(shown(target.as_bytes()))),
            }
        }
        Err(LinkError::Directory(shown(target.as_bytes())))
    }
}

/// A walk along the components of a symlink, with the image as the whole world.
struct Walk {
    here: Vec<String>,
    ahead: VecDeque<String>,
}

impl Walk {
    fn from(root: &Root, dir: &str, target: &str) -> Self {
        let dir = dir.split('/').filter(|part| !part.is_empty()).map(ToOwned::to_owned);
        let mut walk = Self {
            here: root.parts().to_vec(),
            ahead: VecDeque::new(),
        };
        walk.here.extend(dir);
        walk.turn(target);
        walk
    }

    fn turn(&mut self, target: &str) {
        if target.starts_with('/') {
            self.here.clear();
        }
        for part in target.rsplit('/').filter(|part| !matches!(*part, "" | ".")) {
            self.ahead.push_front(part.to_owned());
        }
    }

    /// The last step landed on a symlink: follow it before going on.
    fn detour(&mut self, target: &str) {
        self.here.pop();
        self.turn(target);
    }

    /// The root's parent is the root, as on any Unix.
    fn step(&mut self, part: String) {
        if part == ".." {
            self.here.pop();
        } else {
            self.here.push(part);
        }
    }
}
