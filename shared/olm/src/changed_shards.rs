use std::cmp::Ordering;

use model::{ShardRef, Snapshot};

/// Package whose Shard differs between two Snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedShard<'a> {
    /// Name of the Package; empty for the global group.
    pub name: &'a str,
    /// Shard in the older Snapshot, if it has one.
    pub old: Option<&'a ShardRef>,
    /// Shard in the newer Snapshot, if it has one.
    pub new: Option<&'a ShardRef>,
}

/// Returns the Packages whose Shards differ: the global group first, then in byte order of their names.
pub fn changed_shards<'a>(old: &'a Snapshot, new: &'a Snapshot) -> Vec<ChangedShard<'a>> {
    let mut found = Vec::new();
    // Both lists are sorted: the global group has an empty name and sorts before all others.
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
        found.extend(ChangedShard::new(old, new));
    }
}

impl<'a> ChangedShard<'a> {
    fn new(old: Option<&'a ShardRef>, new: Option<&'a ShardRef>) -> Option<Self> {
        let name = &old.or(new)?.name;
        // Equal hashes mean equal lines, so a Package whose Shard did not change is never read.
        let same = old.map(|shard| shard.lines.sha256) == new.map(|shard| shard.lines.sha256);
        (!same).then_some(Self { name, old, new })
    }

    /// Returns the number of bytes of lines to read to compare both states of the Package.
    pub fn size(&self) -> u64 {
        self.old.into_iter().chain(self.new).map(|shard| shard.lines.size).sum()
    }
}
