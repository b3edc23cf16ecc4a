//! Manifests of all bundles of a Package, compressed in memory.

use std::{cell::RefCell, io, ops::Range, sync::Arc};

use bytes::Bytes;
use prost::encoding::{self, WireType};
use serde_json::value::RawValue;
use zstd::bulk::{Compressor, Decompressor};

use super::bundle::BundleMessage;
use super::go::{self, Wrong};
use super::manifests::{CsvPackage, is_csv, read_object};
use super::record::{BundleRecord, PackageRecord};
use crate::AnswerError;

/// Maximum size of an error about a bundle that is kept, in bytes.
const REASON_MAX: usize = 300;

/// Level of the compression. The first client of a package waits for it.
const LEVEL: i32 = 1;

/// Maximum size of the texts of the first bundle that the others are compressed with, in bytes.
/// Bundles of a Package resemble each other: the full catalog takes 14 MB in place of 25.
const DICTIONARY_MAX: usize = 64 << 10;

/// Number of bundles from which on that saves memory.
const DICTIONARY_BUNDLES: usize = 4;

/// Numbers of fields of the message `Bundle`.
const CSV_JSON_TAG: u32 = 4;
const OBJECT_TAG: u32 = 5;

/// Maximum size of the key and the length of such a field, in bytes.
const FIELD_HEAD_MAX: usize = 11;

thread_local! {
    /// A new one would take longer than a bundle.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Manifests of the bundles of a Package. They depend on the lines of its Shard only.
#[derive(Debug)]
pub struct PackageContents {
    /// Icon in the ClusterServiceVersions, as JSON.
    icon: String,
    /// Dictionary of all texts: the first ones, or nothing for few bundles. `None` before the first
    /// ones.
    dictionary: Option<Box<[u8]>>,
    /// In the order of the record. The reason for which a bundle has none, or its manifests.
    bundles: Vec<Result<BundleTexts, Wrong>>,
    /// Memory that they take, in bytes.
    pub memory: usize,
}

/// Manifests of a bundle.
#[derive(Debug)]
struct BundleTexts {
    /// All texts, compressed.
    compressed: Box<[u8]>,
    /// Size of all texts in bytes.
    size: usize,
    /// Position of the ClusterServiceVersion; empty if there is none.
    csv_json: Range<usize>,
    /// Position at which the icon is missing in it.
    icon_at: Option<usize>,
    /// Positions of all manifests. The ClusterServiceVersion is one of them, unless it was made of
    /// other properties and there are more.
    objects: Box<[Range<usize>]>,
}

impl PackageContents {
    /// Returns a message with the manifests of the bundle at a position.
    ///
    /// # Errors
    /// Fails if the line of the bundle cannot be turned into manifests.
    pub fn complete(
        &self,
        record: &PackageRecord,
        at: usize,
        message: &BundleMessage,
    ) -> Result<Bytes, AnswerError> {
        let texts = self.bundles[at]
            .as_ref()
            .map_err(|reason| AnswerError::Bundle {
                bundle: record.bundles[at].name.clone(),
                reason: reason.clone(),
            })?;
        let all = texts.decompress(self.dictionary.as_deref().unwrap_or_default());
        let all = all.map_err(|_| AnswerError::Memory)?;
        let csv = Some((CSV_JSON_TAG, &texts.csv_json)).filter(|(_, csv)| !csv.is_empty());
        let objects = texts.objects.iter().map(|object| (OBJECT_TAG, object));
        let fields = csv.into_iter().chain(objects);
        let length =
            |(_, range): (u32, &Range<usize>)| range.len() + self.icon.len() + FIELD_HEAD_MAX;
        let length: usize = fields.clone().map(length).sum();
        let mut out = Vec::with_capacity(message.names.len() + length + message.facts.len());
        out.extend_from_slice(&message.names);
        for (tag, range) in fields {
            let icon_at = texts.icon_at.filter(|_| *range == texts.csv_json);
            let (before, after) = all[range.clone()].split_at(icon_at.unwrap_or_default());
            let icon = icon_at.map_or("", |_| &self.icon);
            encoding::encode_key(tag, WireType::LengthDelimited, &mut out);
            encoding::encode_varint((range.len() + icon.len()) as u64, &mut out);
            out.extend_from_slice(before);
            out.extend_from_slice(icon.as_bytes());
            out.extend_from_slice(after);
        }
        out.extend_from_slice(&message.facts);
        Ok(out.into())
    }
}

/// Makes the manifests of the bundles of a Package of their lines.
pub struct ContentsBuilder {
    record: Arc<PackageRecord>,
    package: Result<CsvPackage, Wrong>,
    compressor: Compressor<'static>,
    contents: PackageContents,
    limit: usize,
}

impl ContentsBuilder {
    /// Creates the builder, which needs the line of the package. The manifests may take `limit`
    /// bytes of memory.
    ///
    /// # Errors
    /// Fails if the compressor cannot allocate its memory.
    pub fn new(
        record: Arc<PackageRecord>,
        package_line: &[u8],
        limit: usize,
    ) -> Result<Self, AnswerError> {
        let package = text(package_line).and_then(CsvPackage::read);
        let icon = package
            .as_ref()
            .ok()
            .and_then(|package| package.icon.clone());
        let icon = icon.unwrap_or_default();
        Ok(Self {
            package,
            compressor: Compressor::new(LEVEL).map_err(|_| AnswerError::Memory)?,
            contents: PackageContents {
                memory: icon.len(),
                icon,
                dictionary: (record.bundles.len() < DICTIONARY_BUNDLES).then(Box::default),
                bundles: record
                    .bundles
                    .iter()
                    .map(|_| Err("its line is missing".to_owned()))
                    .collect(),
            },
            record,
            limit,
        })
    }

    /// Adds the line of the bundle at a position in the record. Does nothing once the contents are
    /// larger than their limit.
    pub fn add(&mut self, at: usize, line: &[u8]) {
        if self.contents.memory > self.limit {
            return;
        }
        let read = BundleTexts::read(&self.record.bundles[at], line, &self.package);
        let texts = read.and_then(|(texts, all)| {
            let compressed = self
                .compress(all.as_bytes())
                .map_err(|error| error.to_string())?;
            Ok(BundleTexts {
                compressed,
                ..texts
            })
        });
        let texts = texts.map_err(|reason| reason.chars().take(REASON_MAX).collect());
        self.contents.memory += size_of::<Result<BundleTexts, Wrong>>();
        self.contents.memory += texts.as_ref().map_or(REASON_MAX, BundleTexts::memory);
        self.contents.bundles[at] = texts;
    }

    /// Returns the contents, after the last line.
    ///
    /// # Errors
    /// Fails if the contents are larger than their limit.
    pub fn finish(self) -> Result<PackageContents, AnswerError> {
        if self.contents.memory > self.limit {
            return Err(AnswerError::ContentsTooLarge {
                package: self.record.name.clone(),
                limit: self.limit,
            });
        }
        Ok(self.contents)
    }

    fn compress(&mut self, texts: &[u8]) -> io::Result<Box<[u8]>> {
        if self.contents.dictionary.is_none() {
            let dictionary = &texts[..texts.len().min(DICTIONARY_MAX)];
            self.compressor.set_dictionary(LEVEL, dictionary)?;
            self.contents.memory += dictionary.len();
            self.contents.dictionary = Some(dictionary.into());
        }
        self.compressor.compress(texts).map(Into::into)
    }
}

impl BundleTexts {
    /// Reads the manifests in the line of a bundle, which may end with a newline. Returns also
    /// their texts, to be compressed.
    fn read(
        bundle: &BundleRecord,
        line: &[u8],
        package: &Result<CsvPackage, Wrong>,
    ) -> Result<(Self, String), Wrong> {
        let mut data = Vec::new();
        let mut metadata = Vec::new();
        let mut all = String::new();
        let mut append = |text: &str| {
            let at = all.len();
            all.push_str(text);
            at..all.len()
        };
        let mut objects = Vec::new();
        let mut csv_json = None;
        let [properties, related_images] =
            go::fields(text(line)?, &["properties", "relatedImages"])?;
        go::elements(properties.map_or("null", RawValue::get), |property| {
            let [kind, value] = go::fields(property.get(), &["type", "value"])?;
            let value = value.map_or("null", RawValue::get);
            match &*go::text(kind)? {
                "olm.bundle.object" => {
                    let object = read_object(value, &mut data)?;
                    let range = append(&object);
                    if csv_json.is_none() && is_csv(&object) {
                        csv_json = Some(range.clone());
                    }
                    objects.push(range);
                }
                "olm.csv.metadata" => metadata.push(value),
                _ => {}
            }
            Ok(())
        })?;
        let mut icon_at = None;
        if let (None, [metadata]) = (&csv_json, metadata.as_slice()) {
            let package = package.as_ref().map_err(Clone::clone)?;
            let made = package.csv(bundle, metadata, related_images)?;
            icon_at = made.icon_at;
            let range = append(&made.json);
            if objects.is_empty() {
                objects.push(range.clone());
            }
            csv_json = Some(range);
        }
        let texts = Self {
            compressed: Box::default(),
            size: all.len(),
            csv_json: csv_json.unwrap_or_default(),
            icon_at,
            objects: objects.into(),
        };
        Ok((texts, all))
    }

    fn memory(&self) -> usize {
        self.compressed.len() + size_of_val(&*self.objects)
    }

    fn decompress(&self, dictionary: &[u8]) -> io::Result<Vec<u8>> {
        DECOMPRESSOR.with_borrow_mut(|known| {
            let decompressor = match known {
                Some(decompressor) => decompressor,
                None => known.insert(Decompressor::new()?),
            };
            decompressor.set_dictionary(dictionary)?;
            decompressor.decompress(&self.compressed, self.size)
        })
    }
}

fn text(line: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(line).map_err(|error| error.to_string())
}
