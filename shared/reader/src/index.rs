use std::{collections::HashMap, ops::Range};

use model::{Index, IndexedMeta, Snapshot, StoredDocument};

use crate::error::Corruption;

/// Filters of Metas, all of which have to match. An empty one filters nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct MetaFilter {
    /// Schema of the Meta.
    pub schema: String,
    /// Package field of the Meta. The `olm.package` itself has none.
    pub package: String,
    /// Name of the Meta.
    pub name: String,
}

impl MetaFilter {
    /// True if all Metas match.
    pub fn is_empty(&self) -> bool {
        self.schema.is_empty() && self.package.is_empty() && self.name.is_empty()
    }
}

/// Index of a Snapshot for lookups. It holds every text once, 24 bytes for each Meta, and 4 more in each of three orders.
#[derive(Debug)]
pub(crate) struct CatalogIndex {
    texts: Texts,
    metas: Vec<MetaEntry>,
    by_schema: Vec<u32>,
    by_package: Vec<u32>,
    by_name: Vec<u32>,
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

/// An index that does not describe its Snapshot.
#[derive(Debug, PartialEq, Eq)]
struct IndexMismatch;

impl CatalogIndex {
    pub(crate) fn from_stored(stored: &[u8], snapshot: &Snapshot) -> Result<Self, Corruption> {
        let index = Index::from_stored(stored).map_err(Corruption::Document)?;
        Self::new(&index, snapshot).map_err(|_| Corruption::Mismatch)
    }

    /// Checks that the lines lie end to end in the Shards of `snapshot`, from which their positions in `all.json` follow.
    fn new(index: &Index, snapshot: &Snapshot) -> Result<Self, IndexMismatch> {
        let mut texts = Interner::default();
        let mut metas = Vec::with_capacity(index.shards.iter().map(|shard| shard.metas.len()).sum());
        let mut start = 0;
        let mut shards = snapshot.shards();
        for indexed in &index.shards {
            let shard = shards
                .next()
                .filter(|shard| shard.lines.sha256 == indexed.lines)
                .ok_or(IndexMismatch)?;
            let mut end = 0;
            for meta in &indexed.metas {
                metas.push(entry(meta, start, end, &mut texts)?);
                end = meta.length.checked_add(end).ok_or(IndexMismatch)?;
            }
            (end == shard.lines.size).then_some(()).ok_or(IndexMismatch)?;
            start += end;
        }
        (shards.next().is_none() && start == snapshot.size)
            .then_some(())
            .ok_or(IndexMismatch)?;
        Ok(Self::sorted(texts.finish(), metas))
    }

    fn sorted(texts: Texts, metas: Vec<MetaEntry>) -> Self {
        let order = |key: fn(&MetaEntry) -> u32| {
            let mut order: Vec<u32> = (0..).take(metas.len()).collect();
            // Stable: Metas of one text stay in the order of all.json.
            order.sort_by_key(|&at| key(&metas[at as usize]));
            order
        };
        Self {
            by_schema: order(|meta| meta.schema),
            by_package: order(|meta| meta.package),
            by_name: order(|meta| meta.name),
            texts,
            metas,
        }
    }

    /// Returns the positions of the matching lines in `all.json`, in its order, neighbours joined. At least one filter is
    /// not empty. A Meta without a schema is never found, as in catalogd.
    pub(crate) fn select(&self, filter: &MetaFilter) -> Vec<Range<u64>> {
        joined(self.matching(filter).into_iter().flatten())
    }

    /// Walks the shortest of the lists that the filters select. Returns `None` if a filter has a text that no Meta has.
    fn matching(&self, filter: &MetaFilter) -> Option<impl Iterator<Item = &MetaEntry>> {
        let schema = self.texts.filter(&filter.schema)?;
        let package = self.texts.filter(&filter.package)?;
        let name = self.texts.filter(&filter.name)?;
        let lists = [
            schema.map(|text| self.equal(&self.by_schema, text, |meta| meta.schema)),
            package.map(|text| self.equal(&self.by_package, text, |meta| meta.package)),
            name.map(|text| self.equal(&self.by_name, text, |meta| meta.name)),
        ];
        let shortest = lists.into_iter().flatten().min_by_key(|list| list.len())?;
        let matches = move |meta: &&MetaEntry| {
            meta.schema != Texts::EMPTY
                && schema.is_none_or(|text| meta.schema == text)
                && package.is_none_or(|text| meta.package == text)
                && name.is_none_or(|text| meta.name == text)
        };
        Some(shortest.iter().map(|&at| &self.metas[at as usize]).filter(matches))
    }

    fn equal<'a>(&self, order: &'a [u32], text: u32, key: fn(&MetaEntry) -> u32) -> &'a [u32] {
        let of = |at: &u32| key(&self.metas[*at as usize]);
        let start = order.partition_point(|at| of(at) < text);
        let length = order[start..].partition_point(|at| of(at) == text);
        &order[start..start + length]
    }

    /// Returns the memory that the index takes, in bytes.
    pub(crate) const fn weight(&self) -> u64 {
        let metas = self.metas.capacity() * (size_of::<MetaEntry>() + 3 * size_of::<u32>());
        (metas + self.texts.arena.capacity() + self.texts.ends.capacity() * size_of::<u32>() * 2) as u64
    }
}

fn joined<'a>(metas: impl Iterator<Item = &'a MetaEntry>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for meta in metas {
        let end = meta.offset + u64::from(meta.length);
        match ranges.last_mut() {
            Some(last) if last.end == meta.offset => last.end = end,
            _ => ranges.push(meta.offset..end),
        }
    }
    ranges
}

fn entry(meta: &IndexedMeta, start: u64, end: u64, texts: &mut Interner) -> Result<MetaEntry, IndexMismatch> {
    (meta.offset == end).then_some(()).ok_or(IndexMismatch)?;
    Ok(MetaEntry {
        schema: texts.number(&meta.schema)?,
        package: texts.number(&meta.package)?,
        name: texts.number(&meta.name)?,
        length: u32::try_from(meta.length).map_err(|_| IndexMismatch)?,
        offset: start + meta.offset,
    })
}

/// Gives every distinct text a number.
#[derive(Default)]
struct Interner {
    numbers: HashMap<Box<str>, u32>,
    arena: String,
    ends: Vec<u32>,
}

impl Interner {
    fn number(&mut self, text: &str) -> Result<u32, IndexMismatch> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        if self.ends.is_empty() {
            // The empty text always has the number zero.
            self.ends.push(0);
            self.numbers.insert("".into(), Texts::EMPTY);
            return self.number(text);
        }
        let number = u32::try_from(self.ends.len()).map_err(|_| IndexMismatch)?;
        self.arena.push_str(text);
        self.ends
            .push(u32::try_from(self.arena.len()).map_err(|_| IndexMismatch)?);
        self.numbers.insert(text.into(), number);
        Ok(number)
    }

    fn finish(self) -> Texts {
        let mut texts = Texts {
            arena: self.arena,
            ends: self.ends,
            sorted: Vec::new(),
        };
        let mut sorted: Vec<u32> = (0..).take(texts.ends.len()).collect();
        sorted.sort_unstable_by_key(|&number| texts.get(number));
        texts.sorted = sorted;
        texts
    }
}

/// All texts in one string, found by binary search.
#[derive(Debug)]
struct Texts {
    arena: String,
    ends: Vec<u32>,
    sorted: Vec<u32>,
}

impl Texts {
    const EMPTY: u32 = 0;

    fn get(&self, number: u32) -> &str {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.arena[start..self.ends[at] as usize]
    }

    /// Returns `None` if no Meta has the text, and `Some(None)` for an empty one, which filters nothing.
    #[expect(clippy::option_option, reason = "no filter and no match are two things")]
    fn filter(&self, text: &str) -> Option<Option<u32>> {
        if text.is_empty() {
            return Some(None);
        }
        let found = self.sorted.binary_search_by(|&number| self.get(number).cmp(text));
        found.ok().map(|at| Some(self.sorted[at]))
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "ranges are what is compared")]
mod tests {
    use model::{AllFormats, Content, IndexedShard, ObjectDigest, RENDER_VERSION, Sha256, ShardRef};

    use super::*;

    const STORED: ObjectDigest = ObjectDigest {
        size: 0,
        sha256: Sha256::from_bytes([0; 32]),
    };

    fn meta(schema: &str, package: &str, name: &str, offset: u64) -> IndexedMeta {
        let [schema, package, name] = [schema, package, name].map(str::to_owned);
        IndexedMeta {
            schema,
            package,
            name,
            offset,
            length: 10,
        }
    }

    fn shard(name: &str, metas: u64) -> ShardRef {
        ShardRef {
            name: name.into(),
            stored: STORED,
            lines: Content {
                sha256: Sha256::of(name.as_bytes()),
                size: 10 * metas,
            },
            metas,
        }
    }

    /// Two shards of three lines of ten bytes.
    fn published() -> (Index, Snapshot) {
        let of = |name: &str| IndexedShard {
            lines: Sha256::of(name.as_bytes()),
            metas: vec![
                meta("p", "", name, 0),
                meta("b", name, "x", 10),
                meta("", name, "x", 20),
            ],
        };
        let snapshot = Snapshot {
            render_version: RENDER_VERSION,
            content_hash: Sha256::of(b""),
            size: 60,
            metas: 6,
            all: AllFormats {
                zstd: STORED,
                gzip: STORED,
                identity: None,
            },
            index: STORED,
            facts: std::collections::BTreeMap::new(),
            global: None,
            packages: vec![shard("a", 3), shard("c", 3)],
            image: None,
        };
        let shards = vec![of("a"), of("c")];
        (Index { shards }, snapshot)
    }

    fn select(schema: &str, package: &str, name: &str) -> Vec<Range<u64>> {
        let (index, snapshot) = published();
        let index = CatalogIndex::new(&index, &snapshot).unwrap();
        let [schema, package, name] = [schema, package, name].map(str::to_owned);
        index.select(&MetaFilter { schema, package, name })
    }

    #[test]
    fn select_finds_lines_by_each_filter_and_by_all() {
        assert_eq!(select("b", "", ""), [10..20, 40..50]);
        assert_eq!(select("", "c", ""), [40..50]);
        assert_eq!(select("", "", "x"), [10..20, 40..50]);
        assert_eq!(select("b", "a", "x"), [10..20]);
        assert_eq!(select("p", "a", ""), []);
        assert_eq!(select("q", "", ""), []);
        // An olm.package has no package field.
        assert_eq!(select("", "", "c"), [30..40]);
    }

    #[test]
    fn new_refuses_an_index_that_does_not_fit() {
        let checked = |change: fn(&mut Index)| {
            let (mut index, snapshot) = published();
            change(&mut index);
            CatalogIndex::new(&index, &snapshot).map(|_| ())
        };
        assert_eq!(checked(|_| {}), Ok(()));
        assert_eq!(checked(|index| drop(index.shards.pop())), Err(IndexMismatch));
        assert_eq!(checked(|index| index.shards.swap(0, 1)), Err(IndexMismatch));
        assert_eq!(checked(|index| drop(index.shards[0].metas.pop())), Err(IndexMismatch));
        assert_eq!(
            checked(|index| index.shards[0].metas[1].offset = 11),
            Err(IndexMismatch)
        );
        assert_eq!(
            checked(|index| index.shards[0].metas[2].length = u64::MAX),
            Err(IndexMismatch)
        );
    }
}
