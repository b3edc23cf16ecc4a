//! Record of one Package: the messages that are in the graph. Their numbers are part of the version of the graph.

use std::ops::Range;

use bytes::Bytes;
use model::Sha256;
use prost::Message;

use crate::{RegistryError, api::ApiDeprecation};

/// Position of lines in the uncompressed Shard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub struct LineRange {
    /// Offset of the first byte.
    #[prost(uint64, tag = "1")]
    pub offset: u64,
    /// Number of bytes, with the newline.
    #[prost(uint64, tag = "2")]
    pub length: u64,
}

impl LineRange {
    /// Returns the offsets of the first byte and after the last byte.
    pub const fn offsets(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

/// All that the registry API answers about one Package without its lines. It depends on the lines of the Package only.
///
/// Channels and bundles stay encoded until they are asked for: a Package may have hundreds.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct PackageRecord {
    // `Graph::parse` reads the first two fields alone, so they stay first.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) lines: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    /// Line of the `olm.package`. Without it the Shard has Metas of custom schemas only, and is no package for the API.
    #[prost(message, optional, tag = "3")]
    pub(crate) package_line: Option<LineRange>,
    #[prost(string, tag = "4")]
    pub(crate) default_channel: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) deprecation: Option<ApiDeprecation>,
    /// A [`ChannelRecord`] each, by name.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub(crate) channels: Vec<Bytes>,
    /// A [`BundleRecord`] each, by name.
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub(crate) bundles: Vec<Bytes>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) customs: Vec<CustomRecord>,
}

/// Channel of a Package.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ChannelRecord {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) head: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) deprecation: Option<ApiDeprecation>,
    /// Entries by name of their bundle.
    #[prost(message, repeated, tag = "4")]
    pub(crate) entries: Vec<EntryRecord>,
}

/// Name and head of a [`ChannelRecord`], which is all that most answers need.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ChannelHead {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) head: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) deprecation: Option<ApiDeprecation>,
}

/// Entry of a channel.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct EntryRecord {
    #[prost(string, tag = "1")]
    pub(crate) bundle: String,
    #[prost(string, tag = "2")]
    pub(crate) replaces: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) skips: Vec<String>,
    #[prost(string, tag = "4")]
    pub(crate) skip_range: String,
}

/// Bundle of a Package.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BundleRecord {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) line: Option<LineRange>,
    /// An [`ApiBundle`](crate::ApiBundle) without what depends on the channel, and without `csvJson` and `object`, which are
    /// made of the line.
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) message: Bytes,
}

/// Metas of one custom schema.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct CustomRecord {
    #[prost(string, tag = "1")]
    pub(crate) schema: String,
    /// Whole lines, in the order of the Shard. Neighbours are joined.
    #[prost(message, repeated, tag = "2")]
    pub(crate) lines: Vec<LineRange>,
}

impl PackageRecord {
    /// Returns the name of the Package; empty for the global group.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sha256 of the lines of its Shard.
    ///
    /// # Errors
    /// Fails if the record is damaged.
    pub fn lines(&self) -> Result<Sha256, RegistryError> {
        sha256(&self.lines)
    }

    /// Returns the names and heads of the channels, by name.
    pub(crate) fn channel_heads(&self) -> impl Iterator<Item = Result<ChannelHead, RegistryError>> {
        self.channels
            .iter()
            .map(|bytes| Ok(ChannelHead::decode(bytes.clone())?))
    }

    /// Returns a channel.
    pub(crate) fn channel(&self, name: &str) -> Result<Option<ChannelRecord>, RegistryError> {
        for bytes in &self.channels {
            if ChannelHead::decode(bytes.clone())?.name == name {
                return Ok(Some(ChannelRecord::decode(bytes.clone())?));
            }
        }
        Ok(None)
    }

    /// Returns the channel at a position in `channels`.
    pub(crate) fn channel_at(&self, at: usize) -> Result<ChannelRecord, RegistryError> {
        let bytes = self.channels.get(at).cloned().unwrap_or_default();
        Ok(ChannelRecord::decode(bytes)?)
    }

    /// Returns all channels, by name.
    pub(crate) fn all_channels(&self) -> impl Iterator<Item = Result<ChannelRecord, RegistryError>> {
        (0..self.channels.len()).map(|at| self.channel_at(at))
    }

    /// Returns a bundle.
    pub(crate) fn bundle(&self, name: &str) -> Result<BundleRecord, RegistryError> {
        let (mut from, mut to) = (0, self.bundles.len());
        while let Some(bytes) = (from < to)
            .then(|| from.midpoint(to))
            .and_then(|at| self.bundles.get(at))
        {
            let at = from.midpoint(to);
            let record = BundleRecord::decode(bytes.clone())?;
            match record.name.as_str().cmp(name) {
                std::cmp::Ordering::Equal => return Ok(record),
                std::cmp::Ordering::Less => from = at + 1,
                std::cmp::Ordering::Greater => to = at,
            }
        }
        Err(RegistryError::Damaged("an entry has no bundle"))
    }
}

/// Returns the hash whose bytes are given.
pub(crate) fn sha256(bytes: &[u8]) -> Result<Sha256, RegistryError> {
    let digest = bytes.try_into();
    digest
        .map(Sha256::from_bytes)
        .map_err(|_| RegistryError::Damaged("a record has no hash of its lines"))
}
