//! Edits of one package: what `add` and `remove` make of it.

use std::collections::HashSet;

use olm::Channel;

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

/// Checks that OLM accepts a package, given as its lines, without what a removal takes out of it.
///
/// # Errors
/// Lines that cannot be read, what is not there to be removed, and a package that would not be
/// valid.
pub fn check_removal(lines: &[u8], removal: &Removal) -> Result<(), ComposeError> {
    let mut outline = PackageOutline::default();
    outline.add(&removal.package, lines)?;
    let readable = outline.check_readable(&removal.package);
    readable.map_err(ComposeError::Refused)?;
    let mut rest = Remaining::all(&removal.package, &outline);
    remove(&mut rest, removal)?;
    check(&rest, &outline).map_err(ComposeError::Refused)
}

/// Takes channels and bundles out of what remains of a package.
pub(crate) fn remove(rest: &mut Remaining<'_>, removal: &Removal) -> Result<(), ComposeError> {
    for channel in &removal.channels {
        if !rest.channels.contains_key(channel.as_str()) {
            return Err(nothing_to_remove(rest.name, &format!("channel {channel}")));
        }
    }
    for bundle in &removal.bundles {
        if !rest.bundles.contains(bundle.as_str()) {
            return Err(nothing_to_remove(rest.name, &format!("bundle {bundle}")));
        }
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
pub(crate) fn check(rest: &Remaining<'_>, old: &PackageOutline) -> Result<(), String> {
    let name = rest.name;
    for (channel_name, kept) in &rest.channels {
        let new_channel = &rest.package.channels[*channel_name];
        let old_channel = old.channels.get(*channel_name);
        if old_channel.is_some_and(|old| is_unchanged(old, new_channel, kept)) {
            continue;
        }
        kept_channel::check(new_channel, kept).map_err(|fault| {
            let place =
                format!("package {name}, channel {channel_name}: with what is added and removed");
            ADVICE.error(&place, old_channel, kept, fault)
        })?;
        for entry in kept {
            if !rest.bundles.contains(entry) {
                return Err(no_bundle(name, entry));
            }
        }
    }

    let in_channel: KeptEntries<'_> = rest.channels.values().flatten().copied().collect();
    for bundle in &rest.bundles {
        let is_added = !old.bundles.contains_key(*bundle);
        if is_added && !in_channel.contains(bundle) {
            return Err(no_bundle(name, bundle));
        }
    }

    let default = rest.package.default_channel.as_deref();
    if default.is_some_and(|channel| rest.channels.contains_key(channel)) {
        return Ok(());
    }
    Err(no_default_channel(name, default, &rest.channels))
}

/// Returns true if the kept entries of a channel are all that it had before, each as it was.
fn is_unchanged(old: &Channel, new: &Channel, kept: &KeptEntries<'_>) -> bool {
    old.entries.len() == kept.len()
        && kept
            .iter()
            .all(|entry| old.entries.get(*entry) == new.entries.get(*entry))
}

/// Returns the error of a removal that names what is not there.
pub(crate) fn nothing_to_remove(package: &str, what: &str) -> ComposeError {
    ComposeError::Refused(format!(
        "remove: the composition has no {what} of package {package}"
    ))
}
