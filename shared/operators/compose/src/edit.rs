//! Edits of one package: what `add` and `remove` make of it.

use std::collections::HashSet;

use crate::error::{edit_error, no_bundle, no_default_channel};
use crate::kept_channel::{self, BrokenAdvice, KeptEntries};
use crate::lines::PackageReader;
use crate::merge::MergedLines;
use crate::outline::{PackageOutline, Remaining};
use crate::{ComposeError, Explanation, Removal};

const ADVICE: BrokenAdvice = BrokenAdvice {
    connect: "keep what connects them",
    otherwise: "let added entries replace or skip the others",
};

/// Lines of a package of the result, one at a time: those of an input that its selection takes,
/// then additions and removals.
pub(crate) struct EditedLines<'a> {
    lines: &'a mut PackageReader,
    selected: Option<&'a Remaining<'a>>,
    pub(crate) merged: MergedLines,
    pub(crate) rest: Option<&'a Remaining<'a>>,
    /// Number of lines that were read.
    at: usize,
}

impl<'a> EditedLines<'a> {
    /// Starts at the first of the selected lines; `None` selects all.
    pub(crate) fn new(
        lines: &'a mut PackageReader,
        selected: Option<&'a Remaining<'a>>,
    ) -> Result<Self, ComposeError> {
        lines.rewind()?;
        Ok(Self {
            lines,
            selected,
            merged: MergedLines::default(),
            rest: None,
            at: 0,
        })
    }

    pub(crate) fn next(
        &mut self,
        explanation: &mut Explanation,
    ) -> Result<Option<Vec<u8>>, ComposeError> {
        loop {
            let line = self.next_selected(explanation)?;
            let merged = self.merged.remove(&self.at);
            self.at += 1;
            let Some(line) = merged.or(line) else {
                return Ok(None);
            };
            let Some(rest) = &self.rest else {
                return Ok(Some(line));
            };
            let line = rest.line(line, explanation);
            if let Some(line) = line.map_err(|problem| edit_error(&problem))? {
                return Ok(Some(line));
            }
        }
    }

    fn next_selected(
        &mut self,
        explanation: &mut Explanation,
    ) -> Result<Option<Vec<u8>>, ComposeError> {
        while let Some(line) = self.lines.next_line()? {
            let Some(selected) = &self.selected else {
                return Ok(Some(line));
            };
            let line = selected.line(line, explanation);
            if let Some(line) = line.map_err(|problem| self.lines.select_error(&problem))? {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}

/// Takes channels and bundles out of what remains of a package.
pub(crate) fn remove(rest: &mut Remaining<'_>, removal: &Removal) -> Result<(), ComposeError> {
    let mut channels = removal.channels.iter();
    if let Some(channel) = channels.find(|name| !rest.channels.contains_key(name.as_str())) {
        return Err(nothing_to_remove(rest.name, &format!("channel {channel}")));
    }
    let mut bundles = removal.bundles.iter();
    if let Some(bundle) = bundles.find(|name| !rest.bundles.contains(name.as_str())) {
        return Err(nothing_to_remove(rest.name, &format!("bundle {bundle}")));
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
    rest.bundles.retain(|name| {
        !bundles_gone.contains(name) && (left.contains(name) || !before.contains(name))
    });
    Ok(())
}

/// Checks what `add` and `remove` have changed in a package: what is left of the new one.
pub(crate) fn check(rest: &Remaining<'_>, old: &PackageOutline) -> Result<(), ComposeError> {
    let (name, package) = (rest.name, rest.package);
    for (channel_name, kept) in &rest.channels {
        let (channel, old) = (
            &package.channels[*channel_name],
            old.channels.get(*channel_name),
        );
        let is_same = |old: &olm::Channel, entry: &&str| {
            old.entries.get(*entry) == channel.entries.get(*entry)
        };
        if old.is_some_and(|old| {
            old.entries.len() == kept.len() && kept.iter().all(|entry| is_same(old, entry))
        }) {
            continue;
        }
        kept_channel::check(channel, kept).map_err(|fault| {
            let place =
                format!("package {name}, channel {channel_name}: with what is added and removed");
            edit_error(&ADVICE.error(&place, old, kept, fault))
        })?;
        if let Some(bundle) = kept.iter().find(|entry| !rest.bundles.contains(*entry)) {
            return Err(edit_error(&no_bundle(name, bundle)));
        }
    }
    let in_channel: KeptEntries<'_> = rest.channels.values().flatten().copied().collect();
    let mut added = rest
        .bundles
        .iter()
        .filter(|name| !old.bundles.contains_key(**name));
    if let Some(bundle) = added.find(|name| !in_channel.contains(*name)) {
        return Err(edit_error(&no_bundle(name, bundle)));
    }
    let default = package.default_channel.as_deref();
    if default.is_some_and(|channel| rest.channels.contains_key(channel)) {
        return Ok(());
    }
    Err(edit_error(&no_default_channel(
        name,
        default,
        &rest.channels,
    )))
}

/// Returns the error of a removal that names what is not there.
pub(crate) fn nothing_to_remove(package: &str, what: &str) -> ComposeError {
    ComposeError::Refused(format!(
        "remove: the composition has no {what} of package {package}"
    ))
}
