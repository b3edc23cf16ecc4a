//! Poll of one catalog, as all its steps see it.

use model::EmptyLayers;
use source::Sources;

use super::mirror::Mirror;
use super::retries::Retries;
use crate::{Catalog, PollOptions};

/// Poll of one catalog, with what does not change between its attempts.
pub(super) struct Poll<'a> {
    pub(super) mirror: &'a Mirror,
    pub(super) catalog: &'a Catalog,
    /// Options with `status.json` as it was before the poll.
    pub(super) options: &'a PollOptions,
    /// Reader of the sources of the catalog.
    pub(super) images: Sources,
}

impl<'a> Poll<'a> {
    pub(super) fn new(mirror: &'a Mirror, catalog: &'a Catalog, options: &'a PollOptions) -> Self {
        Self {
            mirror,
            catalog,
            options,
            images: mirror.images(catalog.limits.as_ref()),
        }
    }

    /// Returns the attempts that it may make. A forced poll rechecks what is stored.
    pub(super) fn retries(&self) -> Retries<'_> {
        let has_inputs = self.catalog.source.pulled().is_none();
        Retries::new(&self.mirror.settings.env, self.options.force, has_inputs)
    }

    /// Returns the layers that need not be fetched: those that an earlier attempt has `found`, or
    /// those of the last poll.
    pub(super) fn empty_layers(&self, found: Option<&EmptyLayers>) -> EmptyLayers {
        let before = self.options.before.as_ref();
        let known = found.or(before.and_then(|before| before.empty_layers.as_ref()));
        known.cloned().unwrap_or_default()
    }

    /// Returns true if the stored objects of the catalog have to be looked at.
    pub(super) fn is_check_due(&self) -> bool {
        let now = (self.mirror.settings.env.since_boot)();
        self.options.check_stored || self.mirror.known.is_check_due(&self.catalog.name, now)
    }

    /// Notes that all stored objects of the catalog are there.
    pub(super) fn note_check(&self) {
        let now = (self.mirror.settings.env.since_boot)();
        self.mirror.known.note_check(&self.catalog.name, now);
    }
}
