use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    mem,
};

use bytes::Bytes;
use model::{Sha256, text::LineBuffer};
use prost::{Message, encoding};
use serde_json::value::RawValue;

use crate::{
    LineRange, PackageRecord, RegistryError,
    api::ApiDeprecation,
    bundle_line::BundleLine,
    go::{self, Wrong},
    record::{BundleRecord, ChannelRecord, CustomRecord, EntryRecord},
};

/// Maximum size of joined lines of a custom schema, in bytes. A reader holds as much at a time.
const JOINED_BYTES: u64 = 256 << 10;

/// Maximum memory of one record, in bytes: twice what the records of all 333 packages of a large real catalog take. Lines of many
/// tiny entries would take many times their own size.
const RECORD_BYTES: usize = 16 << 20;

/// Memory of an entry, a bundle or a list beside its texts, in bytes.
const ENTRY_BYTES: usize = 160;

/// End of most lines of bundles, whose keys are sorted. In JSON it can only be the last field of the outermost object.
const BUNDLE_END: &[u8] = br#","schema":"olm.bundle"}"#;

/// Numbers of the fields of an [`ApiBundle`](crate::ApiBundle) that are written one by one.
pub(crate) const DEPRECATION_TAG: u32 = 15;

/// Makes the record of one Package from the lines of its Shard, which may come in chunks of any size.
///
/// It holds one line and the record. Large properties are skipped without being built.
///
/// ```
/// use catalog_mirror_registry::PackageRecorder;
///
/// let lines = b"{\"defaultChannel\":\"stable\",\"name\":\"db\",\"schema\":\"olm.package\"}\n";
/// let mut recorder = PackageRecorder::new("db");
/// recorder.push(lines);
/// let record = recorder.finish(model::Sha256::of(lines))?;
/// assert_eq!(record.name(), "db");
/// # Ok::<(), catalog_mirror_registry::RegistryError>(())
/// ```
#[derive(Debug, Default)]
pub struct PackageRecorder {
    record: PackageRecord,
    channels: BTreeMap<String, ChannelRecord>,
    bundles: BTreeMap<String, DraftBundle>,
    /// Messages of the deprecations by schema and name, once there is an `olm.deprecations`.
    deprecations: Option<BTreeMap<(String, String), String>>,
    customs: BTreeMap<String, Vec<LineRange>>,
    lines: LineBuffer,
    /// Number of bytes of all complete lines.
    offset: u64,
    /// Number of complete lines.
    line: u64,
    /// Memory that the record takes, in bytes.
    used: RecordMemory,
    /// Error of the first line that does not fit. Later lines are not read.
    failed: Option<RegistryError>,
}

/// Memory that a record takes.
#[derive(Debug, Default)]
struct RecordMemory(usize);

impl RecordMemory {
    fn take(&mut self, texts: usize) -> Result<(), Wrong> {
        self.0 += texts + ENTRY_BYTES;
        match self.0 <= RECORD_BYTES {
            true => Ok(()),
            false => Err(format!(
                "the record of the package would take more than {RECORD_BYTES} bytes"
            )),
        }
    }
}

#[derive(Debug)]
struct DraftBundle {
    line: LineRange,
    message: Vec<u8>,
}

impl PackageRecorder {
    /// Creates a recorder for the Package `name`; the global group has an empty name.
    pub fn new(name: &str) -> Self {
        let mut recorder = Self::default();
        name.clone_into(&mut recorder.record.name);
        recorder
    }

    /// Adds the next bytes, which may start or end within a line.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let mut lines = mem::take(&mut self.lines);
        lines.push(chunk, |line| self.line(line));
        self.lines = lines;
    }

    /// Returns the record. `lines` is the sha256 of all lines, by which a later publication finds the record of the same lines.
    ///
    /// # Errors
    /// Fails with the first line that does not fit its schema.
    pub fn finish(mut self, lines: Sha256) -> Result<PackageRecord, RegistryError> {
        mem::take(&mut self.lines).finish(|line| self.line(line));
        if let Some(error) = self.failed {
            return Err(error);
        }
        let deprecations = self.deprecations.unwrap_or_default();
        let deprecation = |schema: &str, name: &str| {
            let message = deprecations.get(&(schema.to_owned(), name.to_owned()))?;
            Some(ApiDeprecation {
                message: message.clone(),
            })
        };
        let mut record = self.record;
        record.lines = lines.as_bytes().to_vec();
        record.deprecation = deprecation("olm.package", "");
        for (name, mut channel) in self.channels {
            channel.deprecation = deprecation("olm.channel", &name);
            record.channels.push(channel.encode_to_vec().into());
        }
        for (name, DraftBundle { line, mut message }) in self.bundles {
            if let Some(deprecation) = deprecation("olm.bundle", &name) {
                encoding::message::encode(DEPRECATION_TAG, &deprecation, &mut message);
            }
            let message = Bytes::from(message);
            let line = Some(line);
            record
                .bundles
                .push(BundleRecord { name, line, message }.encode_to_vec().into());
        }
        let customs = self.customs.into_iter();
        record.customs = customs.map(|(schema, lines)| CustomRecord { schema, lines }).collect();
        Ok(record)
    }

    fn line(&mut self, line: &[u8]) {
        self.line += 1;
        let range = LineRange {
            offset: self.offset,
            length: line.len() as u64 + 1,
        };
        self.offset += range.length;
        if self.failed.is_none()
            && let Err(reason) = self.read(line, range)
        {
            let line = self.line;
            self.failed = Some(RegistryError::Line { line, reason });
        }
    }

    fn read(&mut self, line: &[u8], range: LineRange) -> Result<(), Wrong> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        // Bundles are nearly all bytes of a catalog, so their lines are read once.
        if line.ends_with(BUNDLE_END) {
            return self.read_bundle(text, range);
        }
        let fields = go::fields(text, &["schema"])?;
        let schema = go::text(fields.first().copied().flatten())?;
        match &*schema {
            "olm.package" => self.read_package(text, range),
            "olm.channel" => self.read_channel(text),
            "olm.bundle" => self.read_bundle(text, range),
            "olm.deprecations" => self.read_deprecations(text),
            _ => {
                self.used.take(schema.len())?;
                self.add_custom(schema, range);
                Ok(())
            }
        }
    }

    fn read_package(&mut self, line: &str, range: LineRange) -> Result<(), Wrong> {
        let [default_channel] = texts(line, &["defaultChannel"])?;
        if self.record.package_line.replace(range).is_some() {
            return Err("a second olm.package".to_owned());
        }
        self.record.default_channel = default_channel.into_owned();
        Ok(())
    }

    fn read_channel(&mut self, line: &str) -> Result<(), Wrong> {
        let [name] = texts(line, &["name"])?;
        let list = go::fields(line, &["entries"])?;
        let mut entries = BTreeMap::new();
        let mut updated = BTreeSet::new();
        if let Some(Some(list)) = list.first() {
            go::elements(list.get(), |element| {
                let entry = read_entry(element, &mut self.used)?;
                updated.extend((!entry.replaces.is_empty()).then(|| entry.replaces.clone()));
                updated.extend(entry.skips.iter().cloned());
                match entries.insert(entry.bundle.clone(), entry) {
                    None => Ok(()),
                    Some(twice) => Err(format!("a second entry {:?}", twice.bundle)),
                }
            })?;
        }
        let mut heads = entries.keys().filter(|name| !updated.contains(*name));
        let (Some(head), None) = (heads.next(), heads.next()) else {
            return Err(format!("channel {name:?} has not one head"));
        };
        let channel = ChannelRecord {
            name: name.clone().into_owned(),
            head: head.clone(),
            deprecation: None,
            entries: entries.into_values().collect(),
        };
        match self.channels.insert(channel.name.clone(), channel) {
            None => Ok(()),
            Some(_) => Err(format!("a second channel {name:?}")),
        }
    }

    fn read_bundle(&mut self, line: &str, range: LineRange) -> Result<(), Wrong> {
        let BundleLine { name, message } = BundleLine::read(line, &self.record.name)?;
        self.used.take(name.len() + message.len())?;
        let draft = DraftBundle { line: range, message };
        match self.bundles.insert(name.clone(), draft) {
            None => Ok(()),
            Some(_) => Err(format!("a second bundle {name:?}")),
        }
    }

    fn read_deprecations(&mut self, line: &str) -> Result<(), Wrong> {
        let list = go::fields(line, &["entries"])?;
        let mut messages = BTreeMap::new();
        if let Some(Some(list)) = list.first() {
            go::elements(list.get(), |element| {
                let entry = go::fields(element.get(), &["reference", "message"])?;
                let reference = entry.first().copied().flatten();
                let [schema, name] = texts(reference.map_or("null", RawValue::get), &["schema", "name"])?;
                let message = go::text(entry.get(1).copied().flatten())?;
                self.used.take(schema.len() + name.len() + message.len())?;
                messages.insert((schema.into_owned(), name.into_owned()), message.into_owned());
                Ok(())
            })?;
        }
        match self.deprecations.replace(messages) {
            None => Ok(()),
            Some(_) => Err("a second olm.deprecations".to_owned()),
        }
    }

    fn add_custom(&mut self, schema: Cow<'_, str>, range: LineRange) {
        let ranges = self.customs.entry(schema.into_owned()).or_default();
        match ranges.last_mut() {
            Some(last) if last.offsets().end == range.offset && last.length + range.length <= JOINED_BYTES => {
                last.length += range.length;
            }
            _ => ranges.push(range),
        }
    }
}

fn read_entry(element: &RawValue, used: &mut RecordMemory) -> Result<EntryRecord, Wrong> {
    let [bundle, replaces, skip_range] = texts(element.get(), &["name", "replaces", "skipRange"])?;
    // Names are in the list of entries and in that of what they update.
    used.take(2 * (bundle.len() + replaces.len()) + skip_range.len())?;
    let mut skips = Vec::new();
    if let Some(Some(list)) = go::fields(element.get(), &["skips"])?.first() {
        go::elements(list.get(), |skip| {
            let skip = go::text(Some(skip))?.into_owned();
            used.take(2 * skip.len())?;
            skips.push(skip);
            Ok(())
        })?;
    }
    Ok(EntryRecord {
        bundle: bundle.into_owned(),
        replaces: replaces.into_owned(),
        skips,
        skip_range: skip_range.into_owned(),
    })
}

/// Returns the texts of the fields of an object.
pub(crate) fn texts<'a, const N: usize>(raw: &'a str, names: &[&str; N]) -> Result<[Cow<'a, str>; N], Wrong> {
    let fields = go::fields(raw, names)?;
    let mut texts = [const { Cow::Borrowed("") }; N];
    for (slot, field) in texts.iter_mut().zip(fields) {
        *slot = go::text(field)?;
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_that_would_take_too_much_memory_is_refused() {
        let entries = |count: usize| {
            let entries = (0..count).map(|at| format!(r#"{{"name":"b{at}","replaces":"b{}"}}"#, at + 1));
            format!(
                "{{\"entries\":[{}],\"name\":\"c\",\"package\":\"p\",\"schema\":\"olm.channel\"}}\n",
                entries.collect::<Vec<_>>().join(",")
            )
        };
        let record = |lines: &str| {
            let mut recorder = PackageRecorder::new("p");
            recorder.push(lines.as_bytes());
            recorder.finish(Sha256::of(lines.as_bytes()))
        };
        assert!(record(&entries(1000)).is_ok());
        let error = record(&entries(RECORD_BYTES / ENTRY_BYTES)).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }
}
