//! Contents of all bundles of a Package, compressed in memory.

use std::{cell::RefCell, io, ops::Range};

use bytes::Bytes;
use zstd::bulk::Decompressor;

use crate::{BundleQuery, RegistryError};

/// Maximum size of an error about a bundle that is kept, in bytes.
pub(crate) const REASON_MAX: usize = 300;

thread_local! {
    /// A new one would take longer than a frame.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Contents of the bundles of a Package. They depend on the lines of its Shard only.
#[derive(Debug, Default)]
pub struct PackageContents {
    /// Icon in the ClusterServiceVersions, as JSON.
    pub(crate) icon: Bytes,
    pub(crate) frames: Vec<Frame>,
    /// By offset.
    pub(crate) places: Vec<Place>,
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
pub(crate) struct Frame {
    /// Offset of its first byte in all texts.
    pub(crate) start: usize,
    /// Uncompressed size in bytes.
    pub(crate) size: usize,
    pub(crate) compressed: Box<[u8]>,
}

#[derive(Debug)]
pub(crate) struct Place {
    /// Offset of the line of the bundle.
    pub(crate) offset: u64,
    /// Positions of its texts, or the reason for which there are none.
    pub(crate) texts: Result<BundleTexts, Box<str>>,
}

/// Positions of the manifests of a bundle in all texts.
#[derive(Debug, Default)]
pub(crate) struct BundleTexts {
    pub(crate) csv_json: Range<usize>,
    /// Offset at which the icon is missing in `csv_json`.
    pub(crate) icon_at: Option<usize>,
    /// Also the ClusterServiceVersion, unless it was made of other properties and there are more objects.
    pub(crate) objects: Box<[Range<usize>]>,
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
    pub(crate) fn memory(&self) -> usize {
        let texts = self.texts.as_ref();
        size_of::<Self>() + texts.map_or(REASON_MAX, |texts| size_of_val(&*texts.objects))
    }
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
