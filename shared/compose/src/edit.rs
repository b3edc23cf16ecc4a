//! Edits of one package: applies `add` and `remove` to its lines.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use olm::{Package, PackageParser};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    ComposeError, Notice, Removal, SelectError,
    error::{ChannelFault, RewriteError},
    kept_channel::{self, KeptEntries},
    rewrite::{LineHeader, Remaining, lines, rewrite, set},
    select::check_readable,
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

/// Returns the lines of a package with those of an addition: the old ones in their order, then the new ones.
pub(crate) fn merge(package: &str, old: &[u8], added: &[u8], replace: bool) -> Result<Vec<u8>, ComposeError> {
    let mut merged: Vec<Cow<'_, [u8]>> = lines(old).map(Cow::Borrowed).collect();
    let places = lines(old).enumerate().map(|(at, line)| (key(line), at));
    let mut places: HashMap<[String; 2], usize> = places.collect();
    // An equal line is no conflict: a folder that extends a package often repeats its olm.package.
    let known: HashSet<&[u8]> = lines(old).collect();
    for line in lines(added) {
        if known.contains(line) {
            continue;
        }
        let key = key(line);
        let schema = key[0].as_str();
        let place = places.get(&key).copied().filter(|_| schema.starts_with("olm."));
        let Some(place) = place else {
            places.insert(key, merged.len());
            merged.push(Cow::Borrowed(line));
            continue;
        };
        let exists = |what: String| ComposeError::Exists(package.to_owned(), what);
        let new = match schema {
            "olm.channel" | "olm.deprecations" => {
                let entries = merge_entries(&merged[place], line).map_err(|source| rewrite_error(package, source))?;
                if let Some(entry) = entries.changed.filter(|_| !replace) {
                    return Err(exists(format!("the entry {entry} of {schema} {}", key[1])));
                }
                Cow::Owned(entries.line)
            }
            _ if replace => Cow::Borrowed(line),
            _ => return Err(exists(format!("{schema} {}", key[1]))),
        };
        merged[place] = new;
    }
    Ok(merged.concat())
}

/// Returns schema and name of a line. A package has one `olm.package` and one `olm.deprecations`, whatever their names.
fn key(line: &[u8]) -> [String; 2] {
    let header = LineHeader::of(line);
    let name = match &*header.schema {
        "olm.package" | "olm.deprecations" => String::new(),
        _ => header.name.into_owned(),
    };
    [header.schema.into_owned(), name]
}

/// Line with the entries of two.
struct MergedEntries {
    line: Vec<u8>,
    /// First entry that both have with other content.
    changed: Option<String>,
}

/// Merges the entries of both lines into the old one. Of two entries with one name the added one stays.
fn merge_entries(old: &[u8], added: &[u8]) -> Result<MergedEntries, RewriteError> {
    let entries = |line| serde_json::from_slice(line).map(|list: EntryList| list.entries.unwrap_or_default());
    let mut merged: Vec<Box<RawValue>> = entries(old)?;
    let mut places = HashMap::with_capacity(merged.len());
    for (at, entry) in merged.iter().enumerate() {
        places.insert(entry_key(entry)?, at);
    }
    let mut changed = None;
    for entry in entries(added)? {
        let key = entry_key(&entry)?;
        let Some(&at) = places.get(&key) else {
            places.insert(key, merged.len());
            merged.push(entry);
            continue;
        };
        if merged[at].get() != entry.get() {
            changed.get_or_insert(key);
            merged[at] = entry;
        }
    }
    let line = set(old, "entries", to_raw_value(&merged)?)?;
    Ok(MergedEntries { line, changed })
}

fn entry_key(entry: &RawValue) -> serde_json::Result<String> {
    let header: EntryHeader<'_> = serde_json::from_str(entry.get())?;
    let reference = header.reference.map(|reference| reference.get().to_owned());
    Ok(reference.unwrap_or_else(|| header.name.into_owned()))
}

/// Returns the lines without the channels and bundles that are removed.
pub(crate) fn remove(
    package: &str,
    shard: &[u8],
    removal: &Removal,
    notices: &mut Vec<Notice>,
) -> Result<Vec<u8>, ComposeError> {
    let content = PackageParser::parse(shard);
    check_readable(package, &content).map_err(edited)?;
    let absent = |what: String| ComposeError::NothingToRemove(package.to_owned(), what);
    let mut channels = removal.channels.iter();
    if let Some(channel) = channels.find(|name| !content.channels.contains_key(*name)) {
        return Err(absent(format!("channel {channel}")));
    }
    let mut bundles = removal.bundles.iter();
    if let Some(bundle) = bundles.find(|name| !content.bundles.contains_key(*name)) {
        return Err(absent(format!("bundle {bundle}")));
    }
    let channels_gone: HashSet<&str> = removal.channels.iter().map(String::as_str).collect();
    let bundles_gone: HashSet<&str> = removal.bundles.iter().map(String::as_str).collect();
    let channels = content.channels.iter();
    let channels = channels.filter(|(name, _)| !channels_gone.contains(name.as_str()));
    let channels = channels.map(|(name, channel)| {
        let entries = channel.entries.keys().map(String::as_str);
        let kept: KeptEntries<'_> = entries.filter(|name| !bundles_gone.contains(name)).collect();
        (name.as_str(), kept)
    });
    let channels: BTreeMap<&str, KeptEntries<'_>> = channels.filter(|(_, kept)| !kept.is_empty()).collect();
    let left: HashSet<&str> = channels.values().flatten().copied().collect();
    let before = content.channels.values().flat_map(|channel| channel.entries.keys());
    let before: HashSet<&str> = before.map(String::as_str).collect();
    let bundles = content.bundles.keys().map(String::as_str);
    // A bundle that was in no channel before stays: only what loses its last channel goes.
    let bundles: BTreeSet<&str> = bundles
        .filter(|name| !bundles_gone.contains(name) && (left.contains(name) || !before.contains(name)))
        .collect();
    let rest = Remaining {
        default_channel: None,
        channels,
        bundles,
    };
    let rest = rewrite(package, &content, &mut shard.into(), &rest, notices);
    let rest = rest.map_err(|source| rewrite_error(package, source))?;
    Ok(rest.unwrap_or_else(|| shard.to_vec()))
}

/// Checks what `add` and `remove` have changed in a package.
pub(crate) fn check(package: &str, old: &[u8], new: &[u8]) -> Result<(), ComposeError> {
    let (old, new) = (PackageParser::parse(old), PackageParser::parse(new));
    check_readable(package, &new).map_err(edited)?;
    for (name, channel) in &new.channels {
        if old.channels.get(name).is_some_and(|old| old.entries == channel.entries) {
            continue;
        }
        let entries: KeptEntries<'_> = channel.entries.keys().map(String::as_str).collect();
        kept_channel::check(channel, &entries).map_err(|fault| broken(package, name, &old, &entries, fault))?;
        if let Some(bundle) = entries.iter().find(|entry| !new.bundles.contains_key(**entry)) {
            return Err(no_bundle(package, bundle));
        }
    }
    let in_channel: HashSet<&String> = new
        .channels
        .values()
        .flat_map(|channel| channel.entries.keys())
        .collect();
    let mut added = new.bundles.keys().filter(|name| !old.bundles.contains_key(*name));
    if let Some(bundle) = added.find(|name| !in_channel.contains(name)) {
        return Err(no_bundle(package, bundle));
    }
    let default = new.default_channel.as_ref();
    if default.is_some_and(|channel| new.channels.contains_key(channel)) {
        Ok(())
    } else {
        let left = new.channels.keys().cloned().collect();
        Err(edited(SelectError::DefaultChannel(
            package.to_owned(),
            default.cloned(),
            left,
        )))
    }
}

fn broken(package: &str, name: &str, old: &Package, kept: &KeptEntries<'_>, fault: ChannelFault) -> ComposeError {
    let old = old.channels.get(name);
    let advice = match old.and_then(|channel| kept_channel::connecting(channel, kept, &fault)) {
        Some(missing) => format!("keep what connects them: {missing}"),
        None => "let added entries replace or skip the others".to_owned(),
    };
    edited(SelectError::Broken {
        place: format!("package {package}, channel {name}"),
        selection: "what is added and removed".to_owned(),
        fault,
        advice,
    })
}

fn no_bundle(package: &str, bundle: &str) -> ComposeError {
    edited(SelectError::NoBundle(package.to_owned(), bundle.to_owned()))
}

fn rewrite_error(package: &str, source: RewriteError) -> ComposeError {
    edited(SelectError::Rewrite(package.to_owned(), source))
}

fn edited(source: SelectError) -> ComposeError {
    ComposeError::Edit(Box::new(source))
}
