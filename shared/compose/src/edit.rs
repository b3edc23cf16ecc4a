//! Edits of one package: what `add` and `remove` make of it.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use model::Sha256;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    ComposeError, Explanation, Removal, SelectError,
    error::RewriteError,
    input::{LinePlace, PackageReader},
    kept_channel::{self, BrokenWords, KeptEntries},
    outline::PackageOutline,
    rewrite::{LineHeader, PackageCut, Remaining, set},
};

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

    /// Returns true if a package has the entries of all lines with this key.
    fn has_entries(&self) -> bool {
        matches!(&*self.schema, "olm.channel" | "olm.deprecations")
    }
}

/// Additions to one package, with the places of their lines in the result.
#[derive(Default)]
pub(crate) struct Merge {
    pub(crate) readers: Vec<PackageReader>,
    /// True for each reader whose lines replace others.
    replaces: Vec<bool>,
    /// Lines that change one of the package, by the number of that one.
    changes: HashMap<usize, Vec<LinePlace>>,
    /// Lines behind those of the package, each with those that change it.
    appended: Vec<Vec<LinePlace>>,
}

/// Line of the result: one of the package, or one that is added.
#[derive(Clone, Copy)]
enum MergedLine {
    Old(usize),
    New(usize),
}

/// Lines of a package and of the additions so far, to find out which ones an addition changes.
#[derive(Default)]
pub(crate) struct MergePlan {
    /// Last line with each key, and its hash.
    places: HashMap<LineKey, (MergedLine, Sha256)>,
    known: HashSet<Sha256>,
    lines: usize,
}

impl MergePlan {
    /// Notes the next line of the package.
    pub(crate) fn add_line(&mut self, line: &[u8]) {
        let (key, hash) = (LineKey::of(line), Sha256::of(line));
        self.known.insert(hash);
        if key.schema.starts_with("olm.") {
            self.places.insert(key, (MergedLine::Old(self.lines), hash));
        }
        self.lines += 1;
    }

    /// Adds the lines of an addition: each changes the line with its key, or comes behind all others.
    pub(crate) fn add(
        &mut self,
        merge: &mut Merge,
        mut reader: PackageReader,
        replace: bool,
    ) -> Result<(), ComposeError> {
        let mut new = Vec::new();
        reader.for_each(merge.readers.len(), |line, place| {
            let (key, hash) = (LineKey::of(line), Sha256::of(line));
            // An equal line is no conflict: a folder that extends a package often repeats its olm.package.
            if self.known.contains(&hash) {
                return Ok(());
            }
            new.push(hash);
            match self.places.get_mut(&key) {
                Some((changed, old)) => {
                    self.known.remove(old);
                    *old = hash;
                    match *changed {
                        MergedLine::Old(at) => merge.changes.entry(at).or_default().push(place),
                        MergedLine::New(at) => merge.appended[at].push(place),
                    }
                }
                None => {
                    if key.schema.starts_with("olm.") {
                        self.places.insert(key, (MergedLine::New(merge.appended.len()), hash));
                    }
                    merge.appended.push(vec![place]);
                }
            }
            Ok(())
        })?;
        self.known.extend(new);
        merge.readers.push(reader);
        merge.replaces.push(replace);
        Ok(())
    }
}

impl Merge {
    /// Returns a line with the changes of additions. Of two entries with one name the added one stays.
    fn changed(&mut self, package: &str, line: Vec<u8>, changes: &[LinePlace]) -> Result<Vec<u8>, ComposeError> {
        let key = LineKey::of(&line);
        let exists = |what: String| ComposeError::Exists(package.to_owned(), what);
        if !key.has_entries() {
            let mut line = line;
            for place in changes {
                if !self.replaces[place.reader] {
                    return Err(exists(format!("{} {}", key.schema, key.name)));
                }
                line = self.readers[place.reader].line_at(*place)?;
            }
            return Ok(line);
        }
        let merged = MergedEntries::of(&line);
        let mut merged = merged.map_err(|source| rewrite_error(package, source.into()))?;
        for place in changes {
            let added = self.readers[place.reader].line_at(*place)?;
            let changed = merged.add(&added);
            let changed = changed.map_err(|source| rewrite_error(package, source.into()))?;
            if let Some(entry) = changed.filter(|_| !self.replaces[place.reader]) {
                return Err(exists(format!("the entry {entry} of {} {}", key.schema, key.name)));
            }
        }
        let entries = to_raw_value(&merged.entries).map_err(RewriteError::from);
        let line = entries.and_then(|entries| set(&line, "entries", entries));
        line.map_err(|source| rewrite_error(package, source))
    }
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
}

fn entry_key(entry: &RawValue) -> serde_json::Result<String> {
    let header: EntryHeader<'_> = serde_json::from_str(entry.get())?;
    let reference = header.reference.map(|reference| reference.get().to_owned());
    Ok(reference.unwrap_or_else(|| header.name.into_owned()))
}

/// Lines of a package of the result, one at a time: those of an input that its selection takes, then additions and removals.
pub(crate) struct EditedLines<'a> {
    package: &'a str,
    lines: &'a mut PackageReader,
    selected: Option<PackageCut<'a>>,
    pub(crate) merge: Option<&'a mut Merge>,
    pub(crate) rest: Option<PackageCut<'a>>,
    /// Number of selected lines, then of appended ones, that were read.
    at: [usize; 2],
}

impl<'a> EditedLines<'a> {
    /// Starts at the first of the selected lines; all are selected if there is no cut.
    pub(crate) fn new(
        package: &'a str,
        lines: &'a mut PackageReader,
        selected: Option<PackageCut<'a>>,
    ) -> Result<Self, ComposeError> {
        lines.rewind()?;
        Ok(Self {
            package,
            lines,
            selected,
            merge: None,
            rest: None,
            at: [0, 0],
        })
    }

    pub(crate) fn next(&mut self, explanation: &mut Explanation) -> Result<Option<Vec<u8>>, ComposeError> {
        while let Some(line) = self.next_merged(explanation)? {
            let Some(rest) = &self.rest else {
                return Ok(Some(line));
            };
            let line = rest.line(line, explanation);
            if let Some(line) = line.map_err(|source| rewrite_error(self.package, source))? {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    fn next_merged(&mut self, explanation: &mut Explanation) -> Result<Option<Vec<u8>>, ComposeError> {
        let line = self.next_selected(explanation)?;
        let Some(merge) = &mut self.merge else {
            return Ok(line);
        };
        let (line, changes) = match line {
            Some(line) => {
                self.at[0] += 1;
                (line, merge.changes.get(&(self.at[0] - 1)).cloned().unwrap_or_default())
            }
            None => {
                let Some(places) = merge.appended.get(self.at[1]).cloned() else {
                    return Ok(None);
                };
                self.at[1] += 1;
                let line = merge.readers[places[0].reader].line_at(places[0])?;
                (line, places[1..].to_vec())
            }
        };
        if changes.is_empty() {
            return Ok(Some(line));
        }
        merge.changed(self.package, line, &changes).map(Some)
    }

    fn next_selected(&mut self, explanation: &mut Explanation) -> Result<Option<Vec<u8>>, ComposeError> {
        while let Some(line) = self.lines.next_line()? {
            let Some(selected) = &self.selected else {
                return Ok(Some(line));
            };
            let line = selected.line(line, explanation);
            let line = line.map_err(|source| SelectError::Rewrite(self.package.to_owned(), source));
            if let Some(line) = line.map_err(|error| self.lines.select_error(error))? {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}

/// Takes channels and bundles out of what remains of a package.
pub(crate) fn remove(package: &str, rest: &mut Remaining<'_>, removal: &Removal) -> Result<(), ComposeError> {
    let absent = |what: String| ComposeError::NothingToRemove(package.to_owned(), what);
    let mut channels = removal.channels.iter();
    if let Some(channel) = channels.find(|name| !rest.channels.contains_key(name.as_str())) {
        return Err(absent(format!("channel {channel}")));
    }
    let mut bundles = removal.bundles.iter();
    if let Some(bundle) = bundles.find(|name| !rest.bundles.contains(name.as_str())) {
        return Err(absent(format!("bundle {bundle}")));
    }
    let before: HashSet<&str> = rest.channels.values().flatten().copied().collect();
    let channels_gone: HashSet<&str> = removal.channels.iter().map(String::as_str).collect();
    let bundles_gone: HashSet<&str> = removal.bundles.iter().map(String::as_str).collect();
    rest.channels.retain(|name, kept| {
        kept.retain(|bundle| !bundles_gone.contains(bundle));
        !kept.is_empty() && !channels_gone.contains(name)
    });
    let left: HashSet<&str> = rest.channels.values().flatten().copied().collect();
    // A bundle that was in no channel before stays: only what loses its last channel goes.
    rest.bundles
        .retain(|name| !bundles_gone.contains(name) && (left.contains(name) || !before.contains(name)));
    Ok(())
}

/// Checks what `add` and `remove` have changed in a package: `rest` remains of `new`.
pub(crate) fn check(
    package: &str,
    old: &PackageOutline,
    new: &PackageOutline,
    rest: &Remaining<'_>,
) -> Result<(), ComposeError> {
    for (name, kept) in &rest.channels {
        let (channel, old) = (&new.channels[*name], old.channels.get(*name));
        let is_same = |old: &olm::Channel, entry: &&str| old.entries.get(*entry) == channel.entries.get(*entry);
        if old.is_some_and(|old| old.entries.len() == kept.len() && kept.iter().all(|entry| is_same(old, entry))) {
            continue;
        }
        kept_channel::check(channel, kept).map_err(|fault| {
            let words = BrokenWords {
                selection: "what is added and removed".to_owned(),
                connect: "keep what connects them",
                otherwise: "let added entries replace or skip the others",
            };
            edit_error(words.error(format!("package {package}, channel {name}"), old, kept, fault))
        })?;
        if let Some(bundle) = kept.iter().find(|entry| !rest.bundles.contains(*entry)) {
            return Err(no_bundle(package, bundle));
        }
    }
    let in_channel: KeptEntries<'_> = rest.channels.values().flatten().copied().collect();
    let mut added = rest.bundles.iter().filter(|name| !old.bundles.contains_key(**name));
    if let Some(bundle) = added.find(|name| !in_channel.contains(*name)) {
        return Err(no_bundle(package, bundle));
    }
    let default = new.default_channel.as_ref();
    if default.is_some_and(|channel| rest.channels.contains_key(channel.as_str())) {
        Ok(())
    } else {
        let left = rest.channels.keys().map(|name| (*name).to_owned()).collect();
        Err(edit_error(SelectError::DefaultChannel(
            package.to_owned(),
            default.cloned(),
            left,
        )))
    }
}

fn no_bundle(package: &str, bundle: &str) -> ComposeError {
    edit_error(SelectError::NoBundle(package.to_owned(), bundle.to_owned()))
}

fn rewrite_error(package: &str, source: RewriteError) -> ComposeError {
    edit_error(SelectError::Rewrite(package.to_owned(), source))
}

pub(crate) fn edit_error(source: SelectError) -> ComposeError {
    ComposeError::Edit(Box::new(source))
}
