//! Lines that are added to a package, merged with those that it has.

use std::collections::{BTreeMap, HashMap, HashSet};

use indexmap::IndexMap;
use model::Sha256;
use serde_json::value::{RawValue, to_raw_value};

use crate::ComposeError;
use crate::error::edit_error;
use crate::lines::PackageReader;
use crate::rewrite::{EntryList, LineHeader, RewriteError, not_rewritten, set};

/// Maximum size of the lines that are added to one package and of those that they change, in bytes:
/// they are merged in memory.
const ADDED_BYTES_MAX: usize = 32 << 20;

/// Schema and name of a line. A package has one `olm.package` and one `olm.deprecations`, whatever
/// their names.
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

/// Merger of one package with what is added to it: first [`Self::add`], then [`Self::hold`], at
/// last [`Self::finish`].
#[derive(Default)]
pub(crate) struct Merger<'a> {
    package: &'a str,
    added: Vec<AddedLine>,
    /// Lines of the package that additions may change, and those that they append, by their numbers
    /// in the result.
    lines: BTreeMap<usize, MergedLine>,
    /// Number of the last line with the key of an added one.
    last: HashMap<LineKey, Option<usize>>,
    /// Hashes of the lines that no key tells apart.
    known: HashSet<Sha256>,
    /// Number of lines so far.
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
    line: Vec<u8>,
    /// Entries by their names, if some are added.
    entries: Option<IndexMap<String, Box<RawValue>>>,
}

/// Lines that replace those of the package, by the number of these, and then those behind them.
pub(crate) type MergedLines = BTreeMap<usize, Vec<u8>>;

impl<'a> Merger<'a> {
    pub(crate) fn new(package: &'a str) -> Self {
        Self {
            package,
            ..Self::default()
        }
    }

    /// Adds the lines of an addition.
    pub(crate) fn add(
        &mut self,
        lines: &mut PackageReader,
        replace: bool,
    ) -> Result<(), ComposeError> {
        lines.for_each(|line| {
            self.count(line)?;
            let key = LineKey::of(line);
            if key.is_unique() {
                self.last.entry(key.clone()).or_default();
            }
            self.added.push(AddedLine {
                key,
                line: line.to_vec(),
                replace,
            });
            Ok(())
        })
    }

    /// Takes the next line of the package. Returns it if no addition changes it.
    pub(crate) fn hold(&mut self, line: Vec<u8>) -> Result<Option<Vec<u8>>, ComposeError> {
        let at = self.at;
        self.at += 1;
        let key = LineKey::of(&line);
        if !key.is_unique() {
            self.known.insert(Sha256::of(&line));
        }
        let Some(last) = self.last.get_mut(&key) else {
            return Ok(Some(line));
        };
        *last = Some(at);
        self.count(&line)?;
        self.lines.insert(at, MergedLine::new(line));
        Ok(None)
    }

    fn count(&mut self, line: &[u8]) -> Result<(), ComposeError> {
        self.bytes += line.len();
        if self.bytes > ADDED_BYTES_MAX {
            return Err(ComposeError::Refused(format!(
                "add: the lines that are added to package {} exceed {ADDED_BYTES_MAX} bytes, with those that they change; \
                 make it an input",
                self.package
            )));
        }
        Ok(())
    }

    /// Merges the added lines: each changes the last line with its key, or comes behind all others.
    pub(crate) fn finish(mut self) -> Result<MergedLines, ComposeError> {
        let package = self.package;
        let refused = |error| edit_error(&not_rewritten(package, &error));
        for AddedLine { key, line, replace } in self.added {
            let at = match self.last.get_mut(&key) {
                Some(last) => *last.get_or_insert(self.at),
                None if self.known.insert(Sha256::of(&line)) => self.at,
                None => continue,
            };
            let Some(old) = self.lines.get_mut(&at) else {
                self.lines.insert(at, MergedLine::new(line));
                self.at += 1;
                continue;
            };
            let changed = old.add(&key, line).map_err(|error| refused(error.into()))?;
            if let Some(what) = changed
                && !replace
            {
                return Err(ComposeError::Refused(format!(
                    "add: package {package} has {what} already, with other content; set replace: true to replace it"
                )));
            }
        }
        let mut lines = MergedLines::new();
        for (at, line) in self.lines {
            lines.insert(at, line.finish().map_err(refused)?);
        }
        Ok(lines)
    }
}

impl MergedLine {
    const fn new(line: Vec<u8>) -> Self {
        Self {
            line,
            entries: None,
        }
    }

    /// Adds a line with the same key. Returns what was there with other content. Of two entries
    /// with one name the added one stays.
    fn add(&mut self, key: &LineKey, added: Vec<u8>) -> serde_json::Result<Option<String>> {
        // An equal line is no conflict: a folder that extends a package often repeats its
        // olm.package.
        if self.entries.is_none() && self.line == added {
            return Ok(None);
        }
        let place = format!("{} {}", key.schema, key.name);
        if !key.has_entries() {
            self.line = added;
            return Ok(Some(place));
        }
        let mut merged = match self.entries.take() {
            Some(merged) => merged,
            None => entries(&self.line)?,
        };
        let mut changed = None;
        for (name, entry) in entries(&added)? {
            let old = merged.get(&name);
            if changed.is_none() && old.is_some_and(|old| old.get() != entry.get()) {
                changed = Some(format!("the entry {name} of {place}"));
            }
            merged.insert(name, entry);
        }
        self.entries = Some(merged);
        Ok(changed)
    }

    fn finish(self) -> Result<Vec<u8>, RewriteError> {
        let Some(entries) = self.entries else {
            return Ok(self.line);
        };
        let entries: Vec<_> = entries.values().collect();
        set(&self.line, "entries", to_raw_value(&entries)?)
    }
}

/// Returns the entries of a channel by their names, or deprecations by their targets.
fn entries(line: &[u8]) -> serde_json::Result<IndexMap<String, Box<RawValue>>> {
    let list: EntryList<'_> = serde_json::from_slice(line)?;
    let mut entries = IndexMap::new();
    for entry in list.entries.into_iter().flatten() {
        entries.insert(entry_key(entry)?, entry.to_owned());
    }
    Ok(entries)
}

fn entry_key(entry: &RawValue) -> serde_json::Result<String> {
    let header: LineHeader<'_> = serde_json::from_str(entry.get())?;
    Ok(match header.reference {
        Some(reference) => reference.get().to_owned(),
        None => header.name.into_owned(),
    })
}
