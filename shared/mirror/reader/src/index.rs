use std::{collections::HashMap, ops::Range};

use model::{Index, Snapshot, StoredDocument};

use crate::error::Corruption;

/// Filters of Metas, all of which have to match. An empty one filters nothing. The default selects
/// all Metas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct MetaFilter {
    /// Schema of the Meta, such as `olm.bundle`.
    pub schema: String,
    /// Package field of the Meta. The `olm.package` itself has none.
    pub package: String,
    /// Name of the Meta, in the field `name`.
    pub name: String,
}

/// Index of a Snapshot for lookups: 24 bytes for each Meta, and every text once.
#[derive(Debug)]
pub(crate) struct CatalogIndex {
    /// Number of each text. The empty one has the number zero.
    texts: HashMap<Box<str>, u32>,
    /// Metas in the order of `all.json`.
    metas: Vec<MetaEntry>,
    /// Places in `metas` of each Package, by the number of its name. A Shard has all Metas with the
    /// name of its Package.
    packages: HashMap<u32, Range<usize>>,
}

/// One Meta: the numbers of its texts and the position of its line in `all.json`.
#[derive(Debug, Clone, Copy)]
struct MetaEntry {
    schema: u32,
    package: u32,
    name: u32,
    length: u32,
    offset: u64,
}

/// Number of the empty text.
const EMPTY: u32 = 0;

/// Estimated memory of one text beside its bytes: its place in the map and its allocation.
const TEXT_OVERHEAD: usize = 64;

impl CatalogIndex {
    pub(crate) fn from_stored(stored: &[u8], snapshot: &Snapshot) -> Result<Self, Corruption> {
        let index = Index::from_stored(stored).map_err(Corruption::Document)?;
        Self::new(&index, snapshot).ok_or(Corruption::Mismatch)
    }

    /// Checks that the lines lie end to end in the Shards of `snapshot`, from which their positions
    /// in `all.json` follow.
    fn new(index: &Index<'_>, snapshot: &Snapshot) -> Option<Self> {
        if !index.describes(snapshot) {
            return None;
        }
        let mut this = Self {
            texts: HashMap::from([("".into(), EMPTY)]),
            metas: Vec::with_capacity(index.shards.iter().map(|shard| shard.metas.len()).sum()),
            packages: HashMap::new(),
        };
        let mut start = 0;
        for (indexed, shard) in index.shards.iter().zip(snapshot.shards()) {
            let first = this.metas.len();
            let mut end = 0;
            for meta in &*indexed.metas {
                if meta.offset != end {
                    return None;
                }
                let entry = MetaEntry {
                    schema: this.number(&meta.schema)?,
                    package: this.number(&meta.package)?,
                    name: this.number(&meta.name)?,
                    length: meta.length.try_into().ok()?,
                    offset: start + meta.offset,
                };
                this.metas.push(entry);
                end = meta.length.checked_add(end)?;
            }
            if end != shard.lines.size {
                return None;
            }
            let package = this.number(&shard.name)?;
            this.packages.insert(package, first..this.metas.len());
            start += end;
        }
        (start == snapshot.size).then_some(this)
    }

    fn number(&mut self, text: &str) -> Option<u32> {
        if let Some(&number) = self.texts.get(text) {
            return Some(number);
        }
        let number = self.texts.len().try_into().ok()?;
        self.texts.insert(text.into(), number);
        Some(number)
    }

    /// Returns the positions of the matching lines in `all.json`, in its order, neighbours joined.
    /// At least one filter is not empty. A Meta without a schema is never found, as in catalogd.
    pub(crate) fn select(&self, filter: &MetaFilter) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for meta in self.matching(filter).into_iter().flatten() {
            let end = meta.offset + u64::from(meta.length);
            match ranges.last_mut() {
                Some(last) if last.end == meta.offset => last.end = end,
                _ => ranges.push(meta.offset..end),
            }
        }
        ranges
    }

    /// Returns `None` if a filter has a text that no Meta has.
    fn matching(&self, filter: &MetaFilter) -> Option<impl Iterator<Item = &MetaEntry>> {
        let [schema, package, name] =
            [&filter.schema, &filter.package, &filter.name].map(|text| self.texts.get(&**text));
        let (&schema, &package, &name) = (schema?, package?, name?);
        let metas = match package {
            EMPTY => &self.metas[..],
            // Few numbers are compared then. Otherwise, those of all Metas take a fraction of what
            // a request costs.
            package => &self.metas[self.packages.get(&package)?.clone()],
        };
        Some(metas.iter().filter(move |meta| {
            meta.schema != EMPTY
                && fits(schema, meta.schema)
                && fits(package, meta.package)
                && fits(name, meta.name)
        }))
    }

    /// Returns the memory that the index takes, in bytes.
    pub(crate) fn weight(&self) -> u64 {
        let texts: usize = self
            .texts
            .keys()
            .map(|text| text.len() + TEXT_OVERHEAD)
            .sum();
        (self.metas.capacity() * size_of::<MetaEntry>() + texts) as u64
    }
}

/// True if a text, by its number, is the wanted one. An empty filter wants any.
const fn fits(filter: u32, text: u32) -> bool {
    filter == EMPTY || filter == text
}

#[cfg(test)]
mod tests {
    use testkit::SnapshotBuilder;

    use super::*;

    // The HTTP contract compares all filters with a scan of the lines.
    #[test]
    fn new_refuses_an_index_that_does_not_fit() {
        let lines = |name: &str| {
            format!(
                "{{\"name\":\"{name}\",\"schema\":\"olm.package\"}}\n{{\"package\":\"{name}\"}}\n"
            )
        };
        let builder = SnapshotBuilder::new()
            .package("a", lines("a"))
            .package("c", lines("c"));
        let built = builder.build();
        let stored = &built.objects[&built.snapshot.index.with_kind(model::Kind::Index).key()];
        let checked = |change: fn(&mut Index<'_>)| {
            let mut index = Index::from_stored(stored).unwrap();
            change(&mut index);
            CatalogIndex::new(&index, &built.snapshot).is_some()
        };
        assert!(checked(|_| {}));
        assert!(!checked(|index| drop(index.shards.pop())));
        assert!(!checked(|index| index.shards.swap(0, 1)));
        assert!(!checked(|index| drop(index.shards[0].metas.to_mut().pop())));
        assert!(!checked(
            |index| index.shards[0].metas.to_mut()[1].offset += 1
        ));
        assert!(!checked(
            |index| index.shards[0].metas.to_mut()[1].length = u64::MAX
        ));
    }
}
