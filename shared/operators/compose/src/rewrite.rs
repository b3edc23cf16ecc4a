//! Writes the lines of a package without the channels, entries and bundles that are gone.

use std::{borrow::Cow, collections::BTreeMap};

use fbc::{Chunks, FbcLimits};
use model::text::chain;
use olm::LIFECYCLES;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{Explanation, error::shown, outline::Remaining};

/// Fields by which a line is recognised, an entry of a channel or of deprecations, or the target of
/// a deprecation.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct LineHeader<'a> {
    #[serde(borrow)]
    pub(crate) schema: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    /// Target of a deprecation.
    #[serde(borrow)]
    pub(crate) reference: Option<&'a RawValue>,
    // Other schemas may name a bundle or channel by these too.
    #[serde(borrow)]
    bundle: Option<&'a RawValue>,
    #[serde(borrow)]
    channel: Option<&'a RawValue>,
}

/// Entries of a channel or of deprecations.
#[derive(Deserialize)]
pub(crate) struct EntryList<'a> {
    #[serde(borrow, default)]
    pub(crate) entries: Option<Vec<&'a RawValue>>,
}

impl<'a> LineHeader<'a> {
    pub(crate) fn of(line: &'a [u8]) -> Self {
        // A line without these fields, or with others in their place, is of no schema that matters
        // here.
        serde_json::from_slice(line).unwrap_or_default()
    }

    /// Returns the names by which a document of another schema may refer to a bundle or channel.
    fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let fields = [self.bundle, self.channel].into_iter().flatten();
        let fields = fields.filter_map(|raw| serde_json::from_str(raw.get()).ok().map(Cow::Owned));
        std::iter::once(Cow::Borrowed(&*self.name)).chain(fields)
    }
}

/// Error of a document that is written again: it has not the form of its schema, or no canonical
/// form.
pub(crate) type RewriteError = crate::ReadError;

/// Returns the problem of a package with such a document.
pub(crate) fn not_rewritten(package: &str, error: &RewriteError) -> String {
    format!(
        "package {package}: a document cannot be rewritten: {}",
        chain(&**error)
    )
}

impl Remaining<'_> {
    /// Returns what remains of a line. One that does not change stays byte for byte.
    pub(crate) fn line(
        &self,
        line: Vec<u8>,
        explanation: &mut Explanation,
    ) -> Result<Option<Vec<u8>>, String> {
        let rest = self.rest_of(line, explanation);
        rest.map_err(|error| not_rewritten(self.name, &error))
    }

    fn rest_of(
        &self,
        line: Vec<u8>,
        explanation: &mut Explanation,
    ) -> Result<Option<Vec<u8>>, RewriteError> {
        let header = LineHeader::of(&line);
        let stays = match &*header.schema {
            "olm.package" => match self.default_channel {
                None => true,
                Some(channel) => {
                    return set(&line, "defaultChannel", to_raw_value(channel)?).map(Some);
                }
            },
            "olm.channel" => match self.channels.get(&*header.name) {
                None => false,
                Some(kept) => return filter_entries(&line, |entry| kept.contains(&*entry.name)),
            },
            "olm.bundle" => self.bundles.contains(&*header.name),
            // It is about the package as a whole, also where its name is that of a channel.
            LIFECYCLES => true,
            "olm.deprecations" => {
                return filter_entries(&line, |entry| {
                    let target = entry.reference.map_or("null", RawValue::get);
                    let target = LineHeader::of(target.as_bytes());
                    self.has_target(&target.schema, &target.name)
                });
            }
            _ => {
                let gone = header.names().find(|named| self.is_gone(named));
                if let Some(gone) = &gone {
                    let (package, schema, gone) =
                        (shown(self.name), shown(&header.schema), shown(gone));
                    explanation.notice(format!(
                        "package {package}: a document of schema {schema:?} was dropped, because it names {gone}, which is not selected"
                    ));
                }
                gone.is_none()
            }
        };
        Ok(stays.then_some(line))
    }

    fn is_gone(&self, name: &str) -> bool {
        let bundle = self.package.bundles.contains_key(name) && !self.bundles.contains(name);
        let channel = self.package.channels.contains_key(name) && !self.channels.contains_key(name);
        bundle || channel
    }
}

/// Returns the line without some of its `entries`, or `None` if none is left.
fn filter_entries(
    line: &[u8],
    keep: impl Fn(LineHeader<'_>) -> bool,
) -> Result<Option<Vec<u8>>, RewriteError> {
    let list: EntryList<'_> = serde_json::from_slice(line)?;
    let entries = list.entries.unwrap_or_default();
    let mut kept = Vec::with_capacity(entries.len());
    for entry in &entries {
        if keep(serde_json::from_str(entry.get())?) {
            kept.push(*entry);
        }
    }
    if kept.len() == entries.len() {
        return Ok(Some(line.to_vec()));
    }
    if kept.is_empty() {
        return Ok(None);
    }
    set(line, "entries", to_raw_value(&kept)?).map(Some)
}

/// Returns the line with another value of one field.
pub(crate) fn set(line: &[u8], field: &str, value: Box<RawValue>) -> Result<Vec<u8>, RewriteError> {
    let mut object: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(line)?;
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
