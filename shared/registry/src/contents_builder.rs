//! From the lines of a Shard to the contents of its bundles.

use std::{collections::VecDeque, ops::Range};

use prost::Message;
use serde_json::value::RawValue;
use zstd::bulk::Compressor;

use crate::{
    BundleQuery, Graph, LineRange, PackageContents, RegistryError,
    answers::BundleVersion,
    contents::{BundleTexts, Frame, Place, REASON_MAX},
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
