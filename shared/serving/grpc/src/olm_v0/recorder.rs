//! From the lines of a Shard to the record of its Package.

use std::collections::{BTreeMap, BTreeSet};
use std::{fmt, mem};

use model::{Sha256, text::LineBuffer};
use serde_json::value::RawValue;

use super::bundle::{read_bundle_line, texts};
use super::go::{self, Wrong};
use super::record::{BundleRecord, ChannelRecord, EntryRecord, LineRange, PackageRecord};

/// Maximum memory of one record, in bytes: twice what the records of all 333 packages of a large
/// real catalog take. Lines of many tiny entries would take many times their own size.
const RECORD_BYTES: usize = 16 << 20;

/// Memory of an entry, a bundle or a list beside its texts, in bytes.
const ENTRY_BYTES: usize = 160;

/// End of most lines of bundles, whose keys are sorted. In JSON it can only be the last field of
/// the outermost object.
const BUNDLE_END: &[u8] = br#","schema":"olm.bundle"}"#;

/// Makes the record of one Package from the lines of its Shard, which may come in chunks of any
/// size.
///
/// It holds one line and the record. Large properties are skipped without being built.
#[derive(Default)]
pub struct PackageRecorder {
    name: String,
    /// Line of the `olm.package`, and its default channel.
    package: Option<(LineRange, String)>,
    channels: BTreeMap<String, DraftChannel>,
    bundles: BTreeMap<String, BundleRecord>,
    /// Messages of the deprecations by schema and name, once there is an `olm.deprecations`.
    deprecations: Option<BTreeMap<(String, String), String>>,
    customs: BTreeMap<String, Vec<LineRange>>,
    lines: LineBuffer,
    /// Number of bytes of all complete lines.
    offset: u64,
    /// Number of complete lines.
    line: u64,
    /// Memory that the record takes, in bytes.
    used: usize,
    /// Error of the first line that does not fit. Later lines are not read.
    failed: Option<Wrong>,
}

/// Channel whose entries are not joined with their bundles.
struct DraftChannel {
    /// By name of the bundle.
    entries: BTreeMap<String, EntryRecord>,
    /// Position of the head.
    head: usize,
}

impl PackageRecorder {
    /// Creates a recorder for the Package `name`; the global group has an empty name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds the next bytes, which may start or end within a line.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut lines = mem::take(&mut self.lines);
        lines.push(chunk, |line| self.line(line));
        self.lines = lines;
    }

    /// Returns the record. `lines` is the sha256 of all lines.
    ///
    /// # Errors
    /// Fails with the first line that does not fit its schema, and for an entry without a bundle.
    pub fn finish(mut self, lines: Sha256) -> Result<PackageRecord, String> {
        mem::take(&mut self.lines).finish(|line| self.line(line));
        if let Some(error) = self.failed {
            return Err(error);
        }
        let deprecations = self.deprecations.unwrap_or_default();
        let deprecation = |schema: &str, name: &str| {
            deprecations
                .get(&(schema.to_owned(), name.to_owned()))
                .cloned()
        };
        let mut bundles: Vec<BundleRecord> = self.bundles.into_values().collect();
        for bundle in &mut bundles {
            bundle.deprecation = deprecation("olm.bundle", &bundle.name);
        }
        let mut channels = Vec::with_capacity(self.channels.len());
        for (name, DraftChannel { entries, head }) in self.channels {
            let entries = entries.into_iter().map(|(bundle, entry)| {
                let found = bundles.binary_search_by(|known| known.name.cmp(&bundle));
                let bundle =
                    found.map_err(|_| format!("channel {name:?} has no bundle {bundle:?}"))?;
                Ok(EntryRecord { bundle, ..entry })
            });
            channels.push(ChannelRecord {
                deprecation: deprecation("olm.channel", &name),
                entries: entries.collect::<Result<_, Wrong>>()?,
                head,
                name,
            });
        }
        let (package_line, default_channel) = self.package.unzip();
        Ok(PackageRecord {
            name: self.name,
            lines,
            package_line,
            default_channel: default_channel.unwrap_or_default(),
            deprecation: deprecation("olm.package", ""),
            channels,
            bundles,
            customs: self.customs,
            memory: self.used,
        })
    }

    fn line(&mut self, line: &[u8]) {
        self.line += 1;
        let range = self.offset..self.offset + line.len() as u64 + 1;
        self.offset = range.end;
        if self.failed.is_none()
            && let Err(reason) = self.read(line, range)
        {
            self.failed = Some(format!("line {}: {reason}", self.line));
        }
    }

    fn read(&mut self, line: &[u8], range: LineRange) -> Result<(), Wrong> {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string())?;
        // Bundles are nearly all bytes of a catalog, so their lines are read once.
        if line.ends_with(BUNDLE_END) {
            return self.read_bundle(text, range);
        }
        let [schema] = texts(text, &["schema"])?;
        match &*schema {
            "olm.package" => self.read_package(text, range),
            "olm.channel" => self.read_channel(text),
            "olm.bundle" => self.read_bundle(text, range),
            "olm.deprecations" => self.read_deprecations(text),
            _ => {
                take(&mut self.used, schema.len())?;
                self.customs
                    .entry(schema.into_owned())
                    .or_default()
                    .push(range);
                Ok(())
            }
        }
    }

    fn read_package(&mut self, line: &str, range: LineRange) -> Result<(), Wrong> {
        let [default_channel] = texts(line, &["defaultChannel"])?;
        let before = self.package.replace((range, default_channel.into_owned()));
        only(before.is_some(), format_args!("olm.package"))
    }

    fn read_channel(&mut self, line: &str) -> Result<(), Wrong> {
        let [name] = texts(line, &["name"])?;
        let mut entries = BTreeMap::new();
        let mut updated = BTreeSet::new();
        go::list(line, "entries", |element| {
            let [bundle, replaces, skip_range] =
                texts(element.get(), &["name", "replaces", "skipRange"])?;
            // Names are in the list of entries and in that of what they update.
            take(
                &mut self.used,
                2 * (bundle.len() + replaces.len()) + skip_range.len(),
            )?;
            let mut skips = Vec::new();
            go::list(element.get(), "skips", |skip| {
                let skip = go::text(Some(skip))?.into_owned();
                take(&mut self.used, 2 * skip.len())?;
                skips.push(skip);
                Ok(())
            })?;
            updated.extend((!replaces.is_empty()).then(|| replaces.clone().into_owned()));
            updated.extend(skips.iter().cloned());
            let entry = EntryRecord {
                bundle: 0,
                replaces: replaces.into_owned(),
                skips,
                skip_range: skip_range.into_owned(),
            };
            let before = entries.insert(bundle.clone().into_owned(), entry);
            only(before.is_some(), format_args!("entry {bundle:?}"))
        })?;
        let mut heads = (0..)
            .zip(entries.keys())
            .filter(|(_, name)| !updated.contains(*name));
        let (Some((head, _)), None) = (heads.next(), heads.next()) else {
            return Err(format!("channel {name:?} has not one head"));
        };
        let channel = DraftChannel { entries, head };
        let before = self.channels.insert(name.clone().into_owned(), channel);
        only(before.is_some(), format_args!("channel {name:?}"))
    }

    fn read_bundle(&mut self, line: &str, range: LineRange) -> Result<(), Wrong> {
        let bundle = read_bundle_line(line, range)?;
        take(&mut self.used, bundle.texts())?;
        let name = bundle.name.clone();
        let before = self.bundles.insert(name.clone(), bundle);
        only(before.is_some(), format_args!("bundle {name:?}"))
    }

    fn read_deprecations(&mut self, line: &str) -> Result<(), Wrong> {
        let mut messages = BTreeMap::new();
        go::list(line, "entries", |element| {
            let [reference, message] = go::fields(element.get(), &["reference", "message"])?;
            let [schema, name] =
                texts(reference.map_or("null", RawValue::get), &["schema", "name"])?;
            let message = go::text(message)?;
            take(&mut self.used, schema.len() + name.len() + message.len())?;
            messages.insert(
                (schema.into_owned(), name.into_owned()),
                message.into_owned(),
            );
            Ok(())
        })?;
        let before = self.deprecations.replace(messages);
        only(before.is_some(), format_args!("olm.deprecations"))
    }
}

/// Counts the memory of an entry, a bundle or a list with texts of this length.
fn take(used: &mut usize, texts: usize) -> Result<(), Wrong> {
    *used += texts + ENTRY_BYTES;
    if *used > RECORD_BYTES {
        return Err(format!(
            "the record of the package would take more than {RECORD_BYTES} bytes"
        ));
    }
    Ok(())
}

/// Fails if there was one before.
fn only(is_second: bool, name: fmt::Arguments<'_>) -> Result<(), Wrong> {
    if is_second {
        return Err(format!("a second {name}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_that_would_take_too_much_memory_is_refused() {
        let record = |count: usize| {
            let entries =
                (0..count).map(|at| format!(r#"{{"name":"b{at}","replaces":"b{}"}}"#, at + 1));
            let entries = entries.collect::<Vec<_>>().join(",");
            let mut lines =
                format!("{{\"entries\":[{entries}],\"name\":\"c\",\"schema\":\"olm.channel\"}}\n");
            lines.extend(
                (0..count).map(|at| format!("{{\"name\":\"b{at}\",\"schema\":\"olm.bundle\"}}\n")),
            );
            let mut recorder = PackageRecorder::new("p");
            recorder.push(lines.as_bytes());
            recorder.finish(Sha256::of(lines.as_bytes()))
        };
        assert!(record(1000).is_ok());
        let error = record(RECORD_BYTES / ENTRY_BYTES).unwrap_err();
        assert!(error.contains("more than"), "{error}");
    }
}
