use std::cmp::Ordering;

use layout::{ShardRef, Snapshot};

/// A Package whose Shard is not the same in two Snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Differing<'a> {
    /// Its name; empty for the global group.
    pub name: &'a str,
    /// Its Shard in the older Snapshot.
    pub old: Option<&'a ShardRef>,
    /// Its Shard in the newer Snapshot.
    pub new: Option<&'a ShardRef>,
}

/// The Packages that differ, the global group first, then in byte order of their names.
pub fn differing<'a>(old: &'a Snapshot, new: &'a Snapshot) -> Vec<Differing<'a>> {
    let mut found = Vec::new();
    // The global group has an empty name, so it sorts before all others.
    let (mut olds, mut news) = (old.shards().peekable(), new.shards().peekable());
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.name.cmp(&new.name),
        };
        let old = if order.is_le() { olds.next() } else { None };
        let new = if order.is_ge() { news.next() } else { None };
        found.extend(Differing::new(old, new));
    }
}

impl<'a> Differing<'a> {
    fn new(old: Option<&'a ShardRef>, new: Option<&'a ShardRef>) -> Option<Self> {
        let name = &old.or(new)?.name;
        let same = old.map(|shard| shard.sha256) == new.map(|shard| shard.sha256);
        (!same).then_some(Self { name, old, new })
    }

    /// The bytes of lines that are to be read to know what changed.
    pub fn size(&self) -> u64 {
        self.old.into_iter().chain(self.new).map(|shard| shard.size).sum()
    }
}
