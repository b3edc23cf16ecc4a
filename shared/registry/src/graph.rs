use std::ops::Range;

use bytes::{Buf, BufMut, Bytes};
use model::Sha256;
use prost::{
    Message,
    encoding::{self, WireType},
};

use crate::{PackageRecord, RegistryError, record::sha256};

/// Version of the graph. It grows when the same lines would give another record.
pub const GRAPH_VERSION: u64 = 1;

const VERSION_TAG: u32 = 1;
const RECORD_TAG: u32 = 2;

/// Maximum size of a graph, in bytes: thirteen times that of the largest real catalog. A state with a larger one is not answered for.
pub const GRAPH_BYTES_MAX: usize = 64 << 20;

/// Writes the graph of a Snapshot: its version and the record of each Package.
///
/// ```text
/// graph  := version record*            protobuf: field 1, varint; field 2, bytes
/// record := hash name ...              a PackageRecord, whose first two fields are the hash of its lines and its name
/// ```
#[derive(Debug)]
pub struct GraphBuilder {
    bytes: Vec<u8>,
}

impl GraphBuilder {
    /// Creates a builder for a graph without records.
    pub fn new() -> Self {
        let mut bytes = Vec::new();
        encoding::uint64::encode(VERSION_TAG, &GRAPH_VERSION, &mut bytes);
        Self { bytes }
    }

    /// Adds the record of the next Package. Packages are added in the order of the Snapshot.
    pub fn push(&mut self, record: &PackageRecord) {
        encoding::message::encode(RECORD_TAG, record, &mut self.bytes);
    }

    /// Adds a record that [`Graph::record_of`] returned.
    pub fn push_raw(&mut self, record: &[u8]) {
        encoding::encode_key(RECORD_TAG, WireType::LengthDelimited, &mut self.bytes);
        encoding::encode_varint(record.len() as u64, &mut self.bytes);
        self.bytes.put_slice(record);
    }

    /// Returns the size of the graph so far, in bytes.
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes of the graph.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Graph of a Snapshot: a view of its bytes. Records are decoded when they are used.
#[derive(Debug, Clone)]
pub struct Graph {
    bytes: Bytes,
    /// Sorted by name.
    records: Vec<RecordRange>,
}

#[derive(Debug, Clone)]
struct RecordRange {
    lines: Sha256,
    name: Range<usize>,
    range: Range<usize>,
}

impl Graph {
    /// Reads the bytes that [`GraphBuilder`] wrote, if they are at most `limit`. The index takes at most four times their memory,
    /// and in real catalogs a hundredth of it.
    ///
    /// # Errors
    /// Fails if the bytes are not a graph of this version.
    pub fn parse(bytes: Bytes, limit: usize) -> Result<Self, RegistryError> {
        if bytes.len() > limit {
            let bytes = bytes.len();
            return Err(RegistryError::TooLarge { bytes, limit });
        }
        let mut cursor = Cursor { bytes: &bytes, at: 0 };
        if !cursor.field(VERSION_TAG, WireType::Varint) {
            return Err(RegistryError::Damaged("it has no version"));
        }
        let found = cursor.varint()?;
        if found != GRAPH_VERSION {
            return Err(RegistryError::Version { found });
        }
        let mut records = Vec::new();
        while cursor.at < bytes.len() {
            if !cursor.field(RECORD_TAG, WireType::LengthDelimited) {
                return Err(RegistryError::Damaged("it has an unknown field"));
            }
            let range = cursor.delimited()?;
            records.push(RecordRange::parse(&bytes, range)?);
        }
        let name = |record: &RecordRange| &bytes[record.name.clone()];
        records.sort_by(|a: &RecordRange, b| name(a).cmp(name(b)));
        if records.windows(2).any(|pair| name(&pair[0]) == name(&pair[1])) {
            return Err(RegistryError::Damaged("two records have one name"));
        }
        Ok(Self { bytes, records })
    }

    /// Returns the record of the Shard with these lines, as [`GraphBuilder::push_raw`] takes it.
    pub fn record_of(&self, package: &str, lines: Sha256) -> Option<Bytes> {
        let record = self.find(package)?;
        (record.lines == lines).then(|| self.bytes.slice(record.range.clone()))
    }

    /// Returns the size of the graph in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns all records, by name of the Package.
    pub(crate) fn records(&self) -> impl Iterator<Item = Result<PackageRecord, RegistryError>> {
        self.records.iter().map(|record| self.decode(record))
    }

    /// Returns the record with this name, which the global group and Packages without `olm.package` have too.
    pub(crate) fn record(&self, name: &str) -> Result<Option<PackageRecord>, RegistryError> {
        self.find(name).map(|record| self.decode(record)).transpose()
    }

    fn decode(&self, record: &RecordRange) -> Result<PackageRecord, RegistryError> {
        Ok(PackageRecord::decode(self.bytes.slice(record.range.clone()))?)
    }

    fn find(&self, name: &str) -> Option<&RecordRange> {
        let by_name = |record: &RecordRange| self.bytes[record.name.clone()].cmp(name.as_bytes());
        let at = self.records.binary_search_by(by_name).ok()?;
        self.records.get(at)
    }
}

impl RecordRange {
    fn parse(bytes: &[u8], range: Range<usize>) -> Result<Self, RegistryError> {
        let mut cursor = Cursor {
            bytes: &bytes[..range.end],
            at: range.start,
        };
        if !cursor.field(1, WireType::LengthDelimited) {
            return Err(RegistryError::Damaged("a record has no hash of its lines"));
        }
        let lines = sha256(&bytes[cursor.delimited()?])?;
        // The global group has no name, and protobuf leaves an empty text out.
        let name = match cursor.field(2, WireType::LengthDelimited) {
            true => cursor.delimited()?,
            false => 0..0,
        };
        Ok(Self { lines, name, range })
    }
}

/// Position in encoded fields.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Skips the key of a field, and returns false if another field comes next.
    fn field(&mut self, tag: u32, wire_type: WireType) -> bool {
        let before = self.at;
        let found = self.read(|rest| encoding::decode_key(rest)).ok() == Some((tag, wire_type));
        if !found {
            self.at = before;
        }
        found
    }

    fn varint(&mut self) -> Result<u64, RegistryError> {
        self.read(|rest| encoding::decode_varint(rest))
    }

    /// Skips a value of bytes, and returns its range.
    fn delimited(&mut self) -> Result<Range<usize>, RegistryError> {
        let length = usize::try_from(self.varint()?).ok();
        let end = length.and_then(|length| self.at.checked_add(length));
        let end = end.filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(RegistryError::Damaged("a field ends after its record"))?;
        Ok(std::mem::replace(&mut self.at, end)..end)
    }

    fn read<T>(&mut self, read: impl FnOnce(&mut &[u8]) -> Result<T, prost::DecodeError>) -> Result<T, RegistryError> {
        let mut rest = &self.bytes[self.at..];
        let value = read(&mut rest)?;
        self.at = self.bytes.len() - rest.remaining();
        Ok(value)
    }
}
