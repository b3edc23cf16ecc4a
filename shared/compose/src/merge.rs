//! Lines that are added to a package, merged with those that it has.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    vec,
};

use model::Sha256;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    ComposeError,
    edit::rewrite_error,
    error::{ADDED_BYTES_MAX, RewriteError},
    input::PackageReader,
    rewrite::{LineHeader, set},
};

/// Schema and name of a line. A package has one `olm.package` and one `olm.deprecations`, whatever their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LineKey {
    schema: String,
    name: String,
}

impl LineKey {
    fn of(line: &[u8]) -> Self {
        let header = LineHeader::of(line);
        let name = match &*header.schema {
            "olm.package" | "olm.deprecations" => String::new(),
            _ => header.name.into_owned(),
        };
        Self {
            schema: header.schema.into_owned(),
            name,
        }
    }

    /// Returns true if a package has one line with this key.
    fn is_unique(&self) -> bool {
        self.schema.starts_with("olm.")
    }

    /// Returns true if a package has the entries of all lines with this key.
    fn has_entries(&self) -> bool {
        matches!(&*self.schema, "olm.channel" | "olm.deprecations")
    }
}

/// Merger of one package with what is added to it: first [`Self::add`], then [`Self::hold`], at last [`Self::finish`].
#[derive(Default)]
pub(crate) struct Merger<'a> {
    package: &'a str,
    added: Vec<AddedLine>,
    /// Lines of the package that additions may change, then those that they append.
    lines: Vec<MergedLine>,
    /// Last line with the key of an added one.
    last: HashMap<LineKey, Option<usize>>,
    /// Hashes of the lines that no key tells apart.
    known: HashSet<Sha256>,
    /// Number of lines of the package so far.
    at: usize,
    /// Memory for lines, in bytes.
    bytes: usize,
}

struct AddedLine {
    key: LineKey,
    line: Vec<u8>,
    replace: bool,
}

struct MergedLine {
    /// Number of the line in the package; `None` behind all of its lines.
    at: Option<usize>,
    line: Vec<u8>,
    /// Entries, if some are added.
    entries: Option<MergedEntries>,
}

/// Result of a [`Merger`].
#[derive(Default)]
pub(crate) struct MergedLines {
    /// Lines that replace those of the package, by the number of these.
    pub(crate) replaced: HashMap<usize, Vec<u8>>,
    /// Lines behind those of the package.
    pub(crate) appended: vec::IntoIter<Vec<u8>>,
}

impl<'a> Merger<'a> {
    pub(crate) fn new(package: &'a str) -> Self {
        Self {
            package,
            ..Self::default()
        }
    }

    /// Adds the lines of an addition.
    pub(crate) fn add(&mut self, lines: &mut PackageReader, replace: bool) -> Result<(), ComposeError> {
        lines.for_each(|line| {
            self.count(line)?;
            let (key, line) = (LineKey::of(line), line.to_vec());
            if key.is_unique() {
                self.last.entry(key.clone()).or_default();
            }
            self.added.push(AddedLine { key, line, replace });
            Ok(())
        })
    }

    /// Takes the next line of the package. Returns it if no addition changes it.
    pub(crate) fn hold(&mut self, line: Vec<u8>) -> Result<Option<Vec<u8>>, ComposeError> {
        self.at += 1;
        let key = LineKey::of(&line);
        if !key.is_unique() {
            self.known.insert(Sha256::of(&line));
        }
        let Some(last) = self.last.get_mut(&key) else {
            return Ok(Some(line));
        };
        *last = Some(self.lines.len());
        self.count(&line)?;
        self.lines.push(MergedLine {
            at: Some(self.at - 1),
            line,
            entries: None,
        });
        Ok(None)
    }

    fn count(&mut self, line: &[u8]) -> Result<(), ComposeError> {
        self.bytes += line.len();
        if self.bytes > ADDED_BYTES_MAX {
            return Err(ComposeError::Added(self.package.to_owned()));
        }
        Ok(())
    }

    /// Merges the added lines: each changes the last line with its key, or comes behind all others.
    pub(crate) fn finish(mut self) -> Result<MergedLines, ComposeError> {
        for AddedLine { key, line, replace } in self.added {
            match self.last.get_mut(&key) {
                Some(Some(at)) => {
                    let changed = self.lines[*at].add(&key, line);
                    let changed = changed.map_err(|source| rewrite_error(self.package, source.into()))?;
                    if let Some(what) = changed.filter(|_| !replace) {
                        return Err(ComposeError::Exists(self.package.to_owned(), what));
                    }
                    continue;
                }
                Some(last) => *last = Some(self.lines.len()),
                None if !self.known.insert(Sha256::of(&line)) => continue,
                None => {}
            }
            let (at, entries) = (None, None);
            self.lines.push(MergedLine { at, line, entries });
        }
        let (mut replaced, mut appended) = (HashMap::new(), Vec::new());
        for MergedLine { at, line, entries } in self.lines {
            let line = entries.map_or(Ok(line.clone()), |entries| entries.write(&line));
            let line = line.map_err(|source| rewrite_error(self.package, source))?;
            match at {
                Some(at) => drop(replaced.insert(at, line)),
                None => appended.push(line),
            }
        }
        let appended = appended.into_iter();
        Ok(MergedLines { replaced, appended })
    }
}

impl MergedLine {
    /// Adds a line with the same key. Returns what was there with other content. Of two entries with one name the added one stays.
    fn add(&mut self, key: &LineKey, added: Vec<u8>) -> serde_json::Result<Option<String>> {
        // An equal line is no conflict: a folder that extends a package often repeats its olm.package.
        if self.entries.is_none() && self.line == added {
            return Ok(None);
        }
        let place = format!("{} {}", key.schema, key.name);
        if !key.has_entries() {
            self.line = added;
            return Ok(Some(place));
        }
        let entries = match self.entries.take() {
            Some(entries) => entries,
            None => MergedEntries::of(&self.line)?,
        };
        let changed = self.entries.insert(entries).add(&added)?;
        Ok(changed.map(|entry| format!("the entry {entry} of {place}")))
    }
}

#[derive(Deserialize)]
struct EntryList {
    #[serde(default)]
    entries: Option<Vec<Box<RawValue>>>,
}

/// Name of a channel entry, or target of a deprecation.
#[derive(Deserialize)]
struct EntryHeader<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    reference: Option<&'a RawValue>,
}

/// Entries of all lines of one channel, or of the deprecations.
struct MergedEntries {
    entries: Vec<Box<RawValue>>,
    places: HashMap<String, usize>,
}

impl MergedEntries {
    fn of(line: &[u8]) -> serde_json::Result<Self> {
        let list: EntryList = serde_json::from_slice(line)?;
        let entries = list.entries.unwrap_or_default();
        let places = entries
            .iter()
            .enumerate()
            .map(|(at, entry)| Ok((entry_key(entry)?, at)));
        Ok(Self {
            places: places.collect::<serde_json::Result<_>>()?,
            entries,
        })
    }

    /// Adds the entries of a line. Returns the first one that was there with other content.
    fn add(&mut self, line: &[u8]) -> serde_json::Result<Option<String>> {
        let list: EntryList = serde_json::from_slice(line)?;
        let mut changed = None;
        for entry in list.entries.unwrap_or_default() {
            let key = entry_key(&entry)?;
            let Some(&at) = self.places.get(&key) else {
                self.places.insert(key, self.entries.len());
                self.entries.push(entry);
                continue;
            };
            if self.entries[at].get() != entry.get() {
                changed.get_or_insert(key);
                self.entries[at] = entry;
            }
        }
        Ok(changed)
    }

    /// Returns the line with these entries.
    fn write(&self, line: &[u8]) -> Result<Vec<u8>, RewriteError> {
        set(line, "entries", to_raw_value(&self.entries)?)
    }
}

fn entry_key(entry: &RawValue) -> serde_json::Result<String> {
    let header: EntryHeader<'_> = serde_json::from_str(entry.get())?;
    let reference = header.reference.map(|reference| reference.get().to_owned());
    Ok(reference.unwrap_or_else(|| header.name.into_owned()))
}
