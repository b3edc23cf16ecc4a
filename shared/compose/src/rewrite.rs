//! Writes the lines of a package without the channels, entries and bundles that are gone.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use fbc::{Chunks, FbcLimits};
use olm::Package;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{Notice, PackageLines, error::RewriteError, kept_channel::KeptEntries};

/// Part of a package that remains.
#[derive(Debug, Default)]
pub(crate) struct Remaining<'a> {
    /// Default channel, if it differs from the one in the lines.
    pub(crate) default_channel: Option<&'a str>,
    pub(crate) channels: BTreeMap<&'a str, KeptEntries<'a>>,
    pub(crate) bundles: BTreeSet<&'a str>,
}

/// Fields by which a line is recognised. Other schemas may name a bundle or channel by any of the last three.
#[derive(Default, Deserialize)]
pub(crate) struct LineHeader<'a> {
    #[serde(borrow, default)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    bundle: Option<&'a RawValue>,
    #[serde(borrow, default)]
    channel: Option<&'a RawValue>,
}

/// Object whose values stay as they are written.
type RawObject = BTreeMap<String, Box<RawValue>>;

#[derive(Deserialize)]
struct NamedEntry<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct DeprecationEntry<'a> {
    #[serde(borrow)]
    reference: LineHeader<'a>,
}

impl<'a> LineHeader<'a> {
    pub(crate) fn of(line: &'a [u8]) -> Self {
        // A line without these fields, or with others in their place, is of no schema that matters here.
        serde_json::from_slice(line).unwrap_or_default()
    }

    /// Returns the names by which a document of another schema may refer to a bundle or channel.
    fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let fields = [self.bundle, self.channel].into_iter().flatten();
        let fields = fields.filter_map(|raw| serde_json::from_str(raw.get()).ok().map(Cow::Owned));
        std::iter::once(Cow::Borrowed(&*self.name)).chain(fields)
    }
}

/// Iterates over the lines of a shard, each with its `\n`.
pub(crate) fn lines(shard: &[u8]) -> impl Iterator<Item = &[u8]> {
    shard.split_inclusive(|byte| *byte == b'\n')
}

/// Returns the lines of what remains, in their order; `None` if that is all of them. Lines that do not change stay byte for byte.
pub(crate) fn rewrite(
    name: &str,
    package: &Package,
    shard: &mut PackageLines<'_>,
    rest: &Remaining<'_>,
    notices: &mut Vec<Notice>,
) -> Result<Option<Vec<u8>>, RewriteError> {
    let (mut written, mut is_whole) = (Vec::new(), true);
    shard.for_each(|line| {
        let header = LineHeader::of(line);
        let line = match &*header.schema {
            "olm.package" => match rest.default_channel {
                None => Some(Cow::Borrowed(line)),
                Some(channel) => Some(Cow::Owned(set(line, "defaultChannel", to_raw_value(channel)?)?)),
            },
            "olm.channel" => match rest.channels.get(&*header.name) {
                None => None,
                Some(kept) => filter_entries(line, |entry| {
                    let entry: NamedEntry<'_> = serde_json::from_str(entry.get())?;
                    Ok(kept.contains(&*entry.name))
                })?,
            },
            "olm.bundle" => rest.bundles.contains(&*header.name).then_some(Cow::Borrowed(line)),
            "olm.deprecations" => filter_entries(line, |entry| {
                let entry: DeprecationEntry<'_> = serde_json::from_str(entry.get())?;
                Ok(match &*entry.reference.schema {
                    "olm.channel" => rest.channels.contains_key(&*entry.reference.name),
                    "olm.bundle" => rest.bundles.contains(&*entry.reference.name),
                    _ => true,
                })
            })?,
            _ => match header.names().find(|named| is_gone(named, package, rest)) {
                None => Some(Cow::Borrowed(line)),
                Some(gone) => {
                    notices.push(Notice::Dropped {
                        package: name.to_owned(),
                        schema: header.schema.to_string(),
                        gone: gone.into_owned(),
                    });
                    None
                }
            },
        };
        is_whole &= matches!(line, Some(Cow::Borrowed(_)));
        written.extend_from_slice(&line.unwrap_or_default());
        Ok::<(), RewriteError>(())
    })?;
    Ok((!is_whole).then_some(written))
}

fn is_gone(name: &str, package: &Package, rest: &Remaining<'_>) -> bool {
    let bundle = package.bundles.contains_key(name) && !rest.bundles.contains(name);
    let channel = package.channels.contains_key(name) && !rest.channels.contains_key(name);
    bundle || channel
}

/// Returns the line without some of its `entries`, or `None` if none is left.
fn filter_entries(
    line: &[u8],
    keep: impl Fn(&RawValue) -> serde_json::Result<bool>,
) -> Result<Option<Cow<'_, [u8]>>, RewriteError> {
    let object: RawObject = serde_json::from_slice(line)?;
    let entries: Option<Vec<&RawValue>> = object
        .get("entries")
        .map(|raw| serde_json::from_str(raw.get()))
        .transpose()?;
    let entries = entries.unwrap_or_default();
    let mut kept = Vec::with_capacity(entries.len());
    for entry in &entries {
        if keep(entry)? {
            kept.push(*entry);
        }
    }
    if kept.len() == entries.len() {
        return Ok(Some(Cow::Borrowed(line)));
    }
    if kept.is_empty() {
        return Ok(None);
    }
    let kept = to_raw_value(&kept)?;
    Ok(Some(Cow::Owned(set(line, "entries", kept)?)))
}

/// Returns the line with another value of one field.
pub(crate) fn set(line: &[u8], field: &str, value: Box<RawValue>) -> Result<Vec<u8>, RewriteError> {
    let mut object: RawObject = serde_json::from_slice(line)?;
    object.insert(field.to_owned(), value);
    canonical(&serde_json::to_vec(&object)?)
}

/// Returns the canonical line of a document, as the FBC parser would write it.
fn canonical(document: &[u8]) -> Result<Vec<u8>, RewriteError> {
    // The document is a part of one that passed the limits of its catalog.
    let limits = FbcLimits {
        document_bytes: usize::MAX,
        memory_bytes: usize::MAX,
        ..FbcLimits::default()
    };
    let mut line = Vec::with_capacity(document.len() + 1);
    for chunk in Chunks::new(document, limits, document.len()) {
        chunk?.metas(&limits, &mut |meta| line.extend_from_slice(meta.line))?;
    }
    Ok(line)
}
