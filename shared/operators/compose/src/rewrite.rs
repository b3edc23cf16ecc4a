//! Writes the lines of a package without the channels, entries and bundles that are gone.

use std::{borrow::Cow, collections::BTreeMap};

use fbc::{Chunks, FbcLimits};
use model::text;
use olm::LIFECYCLES;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::TEXT_CHARS;
use crate::{Explanation, outline::Remaining};

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
    fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.clone().into_owned()];
        for field in [self.bundle, self.channel].into_iter().flatten() {
            names.extend(serde_json::from_str::<String>(field.get()));
        }
        names
    }
}

/// Error of a document that is written again: it has not the form of its schema, or no canonical
/// form.
pub(crate) type RewriteError = crate::ReadError;

/// Returns the problem of a package with such a document.
pub(crate) fn not_rewritten(package: &str, error: &RewriteError) -> String {
    format!(
        "package {package}: a document cannot be rewritten: {}",
        text::chain(&**error)
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
            "olm.package" => {
                if let Some(channel) = self.default_channel {
                    return set(&line, "defaultChannel", to_raw_value(channel)?).map(Some);
                }
                true
            }
            "olm.channel" => {
                if let Some(kept) = self.channels.get(&*header.name) {
                    return filter_entries(&line, |entry| kept.contains(&*entry.name));
                }
                false
            }
            "olm.bundle" => self.bundles.contains(&*header.name),
            // It is about the package as a whole, also where its name is that of a channel.
            LIFECYCLES => true,
            "olm.deprecations" => {
                return filter_entries(&line, |entry| match entry.reference {
                    Some(reference) => {
                        let target = LineHeader::of(reference.get().as_bytes());
                        self.has_target(&target.schema, &target.name)
                    }
                    None => true,
                });
            }
            _ => self.keeps_other(&header, explanation),
        };
        if !stays {
            return Ok(None);
        }
        Ok(Some(line))
    }

    /// Returns true if a document of another schema names nothing that is gone. Otherwise explains
    /// that it is dropped.
    fn keeps_other(&self, header: &LineHeader<'_>, explanation: &mut Explanation) -> bool {
        for name in header.names() {
            if self.is_gone(&name) {
                explanation.notice(format!(
                    "package {}: a document of schema {:?} was dropped, because it names {}, which is not selected",
                    text::line(self.name, TEXT_CHARS),
                    text::line(&header.schema, TEXT_CHARS),
                    text::line(&name, TEXT_CHARS),
                ));
                return false;
            }
        }
        true
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
