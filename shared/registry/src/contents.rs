//! Contents of all bundles of a Package, compressed in memory.

use std::{cell::RefCell, collections::VecDeque, io, ops::Range};

use bytes::Bytes;
use prost::Message;
use serde_json::value::RawValue;
use zstd::bulk::{Compressor, Decompressor};

use crate::{
    BundleQuery, Graph, LineRange, RegistryError,
    answers::BundleVersion,
    csv::{CsvPackage, CsvSource},
    go::{self, Wrong},
    objects::{ObjectReader, is_csv},
    record::BundleRecord,
};

/// Size from which a frame ends with a content, in bytes: decompressing it takes some hundredths of a millisecond.
const FRAME_MIN: usize = 32 << 10;

/// Maximum size of a frame, in bytes. The allocator gives larger ones back to the system each time, which takes longer than to
/// fill them.
const FRAME_MAX: usize = 128 << 10;

/// Level of the compression. The first client of a package waits for it.
const LEVEL: i32 = 1;

/// Maximum size of an error about a bundle that is kept, in bytes.
const REASON_MAX: usize = 300;

thread_local! {
    /// A new one would take longer than a frame.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Contents of the bundles of a Package. They depend on the lines of its Shard only.
#[derive(Debug, Default)]
pub struct PackageContents {
    /// Icon in the ClusterServiceVersions, as JSON.
    icon: Bytes,
    frames: Vec<Frame>,
    /// By offset.
    places: Vec<Place>,
}

/// Manifests of a bundle. Each is JSON in parts.
#[derive(Debug, Default)]
pub struct BundleContent {
    /// The ClusterServiceVersion; empty if there is none.
    pub(crate) csv_json: Vec<Bytes>,
    pub(crate) objects: Vec<Vec<Bytes>>,
}

/// Part of the texts of a package, compressed. A text of one bundle may lie in several.
#[derive(Debug)]
struct Frame {
    /// Offset of its first byte in all texts.
    start: usize,
    /// Uncompressed size in bytes.
    size: usize,
    compressed: Box<[u8]>,
}

#[derive(Debug)]
struct Place {
    /// Offset of the line of the bundle.
    offset: u64,
    /// Positions of its texts, or the reason for which there are none.
    texts: Result<BundleTexts, Box<str>>,
}

/// Positions of the manifests of a bundle in all texts.
#[derive(Debug, Default)]
struct BundleTexts {
    csv_json: Range<usize>,
    /// Offset at which the icon is missing in `csv_json`.
    icon_at: Option<usize>,
    /// Also the ClusterServiceVersion, unless it was made of other properties and there are more objects.
    objects: Box<[Range<usize>]>,
}

impl PackageContents {
    /// Returns the content of a bundle.
    ///
    /// # Errors
    /// Fails if the line of the bundle was not the one of its record.
    pub fn content(&self, query: &BundleQuery) -> Result<BundleContent, RegistryError> {
        let at = self
            .places
            .binary_search_by_key(&query.bundle_line.offset, |place| place.offset)
            .map_err(|_| RegistryError::Damaged("a bundle has no line"))?;
        let place = &self.places[at];
        let texts = place.texts.as_ref().map_err(|reason| query.failed(reason))?;
        let all = texts
            .objects
            .iter()
            .fold(texts.csv_json.clone(), |all, next| match all.is_empty() {
                true => next.clone(),
                false => all.start.min(next.start)..all.end.max(next.end),
            });
        if all.is_empty() {
            return Ok(BundleContent::default());
        }
        let rope = self.rope(all);
        let rope = rope.map_err(|_| RegistryError::Damaged("the contents of a package cannot be decompressed"))?;
        let text = |range: &Range<usize>| match texts.icon_at {
            Some(at) if *range == texts.csv_json => {
                let mut parts = rope.slice(range.start..at);
                parts.push(self.icon.clone());
                parts.extend(rope.slice(at..range.end));
                parts
            }
            _ => rope.slice(range.clone()),
        };
        Ok(BundleContent {
            csv_json: text(&texts.csv_json),
            objects: texts.objects.iter().map(text).collect(),
        })
    }

    /// Decompresses the frames in which a part of the texts lies.
    fn rope(&self, range: Range<usize>) -> io::Result<Rope> {
        let first = self
            .frames
            .partition_point(|frame| frame.start + frame.size <= range.start);
        let frames = self.frames[first..].iter().take_while(|frame| frame.start < range.end);
        let parts = frames.map(|frame| Ok((frame.start, frame.decompress()?)));
        parts.collect::<io::Result<_>>().map(Rope)
    }

    /// Returns the memory that they take, in bytes.
    pub fn memory(&self) -> usize {
        let frames = self
            .frames
            .iter()
            .map(|frame| frame.compressed.len() + size_of::<Frame>());
        let places = self.places.iter().map(Place::memory);
        self.icon.len() + frames.sum::<usize>() + places.sum::<usize>()
    }
}

impl Place {
    fn memory(&self) -> usize {
        let texts = self.texts.as_ref();
        size_of::<Self>() + texts.map_or(REASON_MAX, |texts| size_of_val(&*texts.objects))
    }
}

impl BundleTexts {
    /// Appends the manifests in the line of a bundle to a frame with this offset. The line may end with a newline.
    fn write(
        bundle: &BundleSource,
        line: &[u8],
        package: &Result<CsvPackage, Wrong>,
        start: usize,
        frame: &mut Vec<u8>,
    ) -> Result<Self, Wrong> {
        let fields = go::fields(text(line)?, &["properties", "relatedImages"])?;
        let [properties, related_images] = [0, 1].map(|at| fields.get(at).copied().flatten());
        let mut object = Vec::new();
        let mut reader = ObjectReader::default();
        let mut metadata = Vec::new();
        go::elements(properties.map_or("null", RawValue::get), |property| {
            let property = go::fields(property.get(), &["type", "value"])?;
            let [kind, value] = [0, 1].map(|at| property.get(at).copied().flatten());
            let value = value.map_or("null", RawValue::get);
            match &*go::text(kind)? {
                "olm.bundle.object" => object.push(reader.read(value)?),
                "olm.csv.metadata" => metadata.push(value),
                _ => {}
            }
            Ok(())
        })?;
        let mut append = |text: &str| {
            let at = start + frame.len();
            frame.extend_from_slice(text.as_bytes());
            at..at + text.len()
        };
        let mut objects: Vec<Range<usize>> = object.iter().map(|object| append(object)).collect();
        let is_found = |at: &usize| object.get(*at).is_some_and(|object| is_csv(object));
        let found = (0..object.len()).find(is_found);
        if let Some(csv_json) = found.map(|at| objects[at].clone()) {
            return Ok(Self {
                csv_json,
                icon_at: None,
                objects: objects.into(),
            });
        }
        let [metadata] = metadata.as_slice() else {
            return Ok(Self {
                objects: objects.into(),
                ..Self::default()
            });
        };
        let source = CsvSource {
            name: &bundle.name,
            version: &bundle.version,
            metadata,
            related_images,
            package: package.as_ref().map_err(Clone::clone)?,
        };
        let made = source.csv()?;
        let csv_json = append(&made.json);
        if objects.is_empty() {
            objects.push(csv_json.clone());
        }
        Ok(Self {
            icon_at: made.icon_at.map(|at| csv_json.start + at),
            csv_json,
            objects: objects.into(),
        })
    }
}

fn text(line: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(line).map_err(|error| error.to_string())
}

impl Frame {
    fn decompress(&self) -> io::Result<Bytes> {
        DECOMPRESSOR.with_borrow_mut(|known| {
            let decompressor = match known {
                Some(decompressor) => decompressor,
                None => known.insert(Decompressor::new()?),
            };
            decompressor.decompress(&self.compressed, self.size).map(Bytes::from)
        })
    }
}

/// Part of the texts in pieces, each with its offset.
struct Rope(Vec<(usize, Bytes)>);

impl Rope {
    /// Returns a text in pieces.
    fn slice(&self, range: Range<usize>) -> Vec<Bytes> {
        let pieces = self.0.iter().map(|(start, piece)| {
            let at = |offset: usize| offset.saturating_sub(*start).min(piece.len());
            piece.slice(at(range.start)..at(range.end).max(at(range.start)))
        });
        pieces.filter(|piece| !piece.is_empty()).collect()
    }
}

/// Makes the contents of a Package while the lines of its Shard come.
pub struct ContentsBuilder {
    package: String,
    /// Bundles whose lines are still to come, by offset.
    bundles: VecDeque<BundleSource>,
    values: Result<CsvPackage, Wrong>,
    /// Offset of the next byte.
    position: u64,
    /// Start of the line of the first bundle, if it came in an earlier chunk.
    line: Vec<u8>,
    /// Texts that are not compressed yet.
    frame: Vec<u8>,
    /// Offset of its first byte in all texts.
    start: usize,
    compressor: Compressor<'static>,
    contents: PackageContents,
    memory: usize,
    limit: usize,
}

/// Bundle whose content is made.
struct BundleSource {
    line: LineRange,
    name: String,
    version: String,
}

impl Graph {
    /// Creates the builder of the contents of all bundles in the package of a query, which may take `limit` bytes of memory. It
    /// needs the line of the package, then all lines of the Shard.
    ///
    /// # Errors
    /// Fails if there is no such package.
    pub fn contents_of(
        &self,
        query: &BundleQuery,
        package_line: &[u8],
        limit: usize,
    ) -> Result<ContentsBuilder, RegistryError> {
        let record = self.record(&query.package)?;
        let bundles = record.into_iter().flat_map(|record| record.bundles).map(|bundle| {
            let BundleRecord { name, line, message } = BundleRecord::decode(bundle)?;
            let version = BundleVersion::decode(message)?.version;
            let line = line.unwrap_or_default();
            Ok(BundleSource { line, name, version })
        });
        let mut bundles = bundles.collect::<Result<Vec<_>, RegistryError>>()?;
        bundles.sort_by_key(|bundle| bundle.line.offset);
        let package = text(package_line).and_then(CsvPackage::read);
        let icon = package.as_ref().ok().and_then(|package| package.icon.clone());
        let icon = icon.unwrap_or_default();
        Ok(ContentsBuilder {
            package: query.package.clone(),
            bundles: bundles.into(),
            values: package,
            position: 0,
            line: Vec::new(),
            frame: Vec::new(),
            start: 0,
            compressor: Compressor::new(LEVEL).map_err(|_| RegistryError::Memory)?,
            memory: icon.len(),
            contents: PackageContents {
                icon: icon.into(),
                ..PackageContents::default()
            },
            limit,
        })
    }
}

impl ContentsBuilder {
    /// Reads the next lines of the Shard, which may end anywhere.
    ///
    /// # Errors
    /// Fails if the contents are larger than their limit.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), RegistryError> {
        let mut rest = chunk;
        while let Some(bundle) = self.bundles.front() {
            let Range { start, end } = bundle.line.offsets();
            self.split(&mut rest, start);
            let part = self.split(&mut rest, end);
            if self.position < end {
                self.line.extend_from_slice(part);
                break;
            }
            let Some(bundle) = self.bundles.pop_front() else {
                break;
            };
            if self.line.is_empty() {
                self.add(&bundle, part)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(part);
                self.add(&bundle, &line)?;
            }
        }
        self.position += rest.len() as u64;
        Ok(())
    }

    /// Returns the bytes before an offset.
    fn split<'c>(&mut self, rest: &mut &'c [u8], until: u64) -> &'c [u8] {
        let length = usize::try_from(until.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let (part, after) = rest.split_at(length.min(rest.len()));
        *rest = after;
        self.position += part.len() as u64;
        part
    }

    fn add(&mut self, bundle: &BundleSource, line: &[u8]) -> Result<(), RegistryError> {
        let before = self.frame.len();
        let texts = BundleTexts::write(bundle, line, &self.values, self.start, &mut self.frame).map_err(|reason| {
            self.frame.truncate(before);
            reason.chars().take(REASON_MAX).collect::<String>().into()
        });
        let place = Place {
            offset: bundle.line.offset,
            texts,
        };
        self.memory += place.memory();
        self.contents.places.push(place);
        if self.frame.len() >= FRAME_MIN {
            self.cut(FRAME_MIN)?;
        }
        match self.memory > self.limit {
            true => Err(RegistryError::ContentsTooLarge {
                package: self.package.clone(),
                limit: self.limit,
            }),
            false => Ok(()),
        }
    }

    /// Compresses the texts into frames, except fewer bytes than `keep` at their end.
    fn cut(&mut self, keep: usize) -> Result<(), RegistryError> {
        let mut rest = self.frame.as_slice();
        while rest.len() >= keep {
            let (text, after) = rest.split_at(rest.len().min(FRAME_MAX));
            rest = after;
            let compressed = self.compressor.compress(text).map_err(|_| RegistryError::Memory)?;
            self.memory += compressed.len() + size_of::<Frame>();
            self.contents.frames.push(Frame {
                start: self.start,
                size: text.len(),
                compressed: compressed.into(),
            });
            self.start += text.len();
        }
        self.frame = rest.to_vec();
        Ok(())
    }

    /// Returns the contents, after the last line.
    ///
    /// # Errors
    /// Fails if lines of bundles did not come.
    pub fn finish(mut self) -> Result<PackageContents, RegistryError> {
        if !self.bundles.is_empty() {
            return Err(RegistryError::Damaged(
                "the lines of a package end before those of its bundles",
            ));
        }
        self.cut(1)?;
        Ok(self.contents)
    }
}
