//! A ring: the state of another catalog at which it is, and packages of the newest state.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use model::{Current, Previous, Ring, Snapshot, SourceInput, Verified};
use promotion::{Followed, Promotion, RingPackages, RingSource, composition};
use source::Digest;
use store::Store;

use super::composed::{compose, read_snapshot};
use super::content::NewContent;
use super::fetched::Fetched;
use super::mirror::Mirror;
use super::pulled::ContentReader;
use super::resolved::{InputState, ResolvedComposition, ResolvedInput, published_pointer, waiting};
use crate::{ComposedSource, PollError, Transaction};

/// A ring, and the catalog that it follows, as a poll found them.
pub(super) struct ResolvedRing<'c> {
    source: &'c RingSource,
    /// Place of the ring from now on. Collection keeps its states until the commit.
    pub(super) ring: Ring,
    /// State that is published.
    state: Previous,
    /// Published state of the catalog that is followed.
    newest: Current,
    /// Changes with the content of the ring.
    pub(super) revision: Digest,
}

/// Content of a ring.
pub(super) struct RingChoice {
    /// State that is served as it is stored; `None` if some packages have another content in the
    /// newest state.
    pub(super) whole: Option<SourceInput>,
    pub(super) packages: RingPackages,
}

impl<'c> ResolvedRing<'c> {
    /// Finds the place of the ring, by its rule or as a person wants it.
    ///
    /// # Errors
    /// [`PollError::Waiting`] if the catalog that is followed cannot be used now, and
    /// [`PollError::Promotion`].
    pub(super) async fn find(
        mirror: &Mirror,
        transaction: &Transaction,
        source: &'c RingSource,
        promotion: Option<&Promotion>,
    ) -> Result<Self, PollError> {
        let newest = published_pointer(mirror, &source.of).await?;
        let base = transaction.base();
        let before = base.and_then(|base| base.source.ring.as_deref());
        let now = transaction.date().await?;
        let mut lost = BTreeSet::new();
        let mut ring = loop {
            let followed = Followed {
                of: &source.of,
                source: &newest,
                before,
                rule: source.rule,
                now,
                lost: &lost,
            };
            let ring = match promotion {
                Some(promotion) => followed.promote(promotion)?,
                None => followed.follow(),
            };
            let known = before.into_iter().flat_map(Ring::states);
            let known: BTreeSet<_> = known.map(|state| state.snapshot).collect();
            let lost_before = lost.len();
            for state in ring
                .states()
                .filter(|state| !known.contains(&state.snapshot))
            {
                // What is known is named by the pointer, which the commit expects unchanged.
                let input = source_input(source, state);
                match read_snapshot(&*mirror.store, &input, Some(transaction)).await {
                    Ok(_) => {}
                    Err(PollError::Waiting { .. }) => drop(lost.insert(state.snapshot)),
                    Err(error) => return Err(error),
                }
            }
            if lost.len() == lost_before {
                break ring;
            }
        };
        let is_empty = base.is_none_or(|base| base.source.is_placeholder());
        ring.is_placeholder = is_empty && ring.at.is_none();
        // Without a state of its own a ring stays at what is published.
        let published = base.and_then(|base| base.publications().into_iter().next());
        let state = ring.at.clone().or(published);
        let Some(state) = state.or_else(|| ring.waiting.first().cloned()) else {
            return Err(waiting(&source.of, "its published state is not stored"));
        };
        let revision = if ring.at.is_some() && !source.now.is_empty() {
            let hashes = [state.content_hash, newest.content_hash];
            Digest::of(format!("{hashes:?} {:?}", source.now).as_bytes())
        } else {
            let digest = format!("sha256:{}", state.content_hash).parse();
            digest.expect("a sha256 in hex is a digest")
        };
        Ok(Self {
            source,
            ring,
            state,
            newest,
            revision,
        })
    }

    /// Returns the signatures of the image from which the state was made.
    pub(super) fn verified(&self) -> Option<Verified> {
        self.state.verified.clone()
    }

    /// Returns what a ring tells that has no state yet.
    pub(super) fn first_notice(&self) -> Option<Vec<String>> {
        Some(vec![self.source.first_notice(&self.ring)?])
    }

    /// Compares the packages that are taken at once with those of the state.
    pub(super) async fn choose(&self, store: &dyn Store) -> Result<RingChoice, PollError> {
        let state = self.input(&self.state);
        let mut packages = RingPackages::default();
        if self.ring.at.is_some() && !self.source.now.is_empty() {
            let own = read_snapshot(store, &state, None).await?;
            let newest = read_snapshot(store, &self.newest(), None).await?;
            packages = self.source.packages(&own, &newest);
        }
        Ok(RingChoice {
            whole: packages.newer.is_empty().then_some(state),
            packages,
        })
    }

    /// Composes the state of the ring with packages of the newest state, and renders it.
    pub(super) async fn compose(
        &self,
        reader: &ContentReader,
        transaction: &Transaction,
        reusable: Option<&Snapshot>,
        fetched: &mut Fetched,
    ) -> Result<NewContent, PollError> {
        let choice = self.choose(&*reader.store).await?;
        let of = &self.source.of;
        let composition = composition(of, self.state.content_hash, &choice.packages.newer);
        let composed = ComposedSource::new(composition, Path::new(""));
        let composed = composed.expect("the inputs are names of catalogs");
        // In the order of the composition.
        let states = [self.newest(), self.input(&self.state)];
        let inputs = composed.inputs.iter().zip(states);
        let inputs = inputs.map(|(input, state)| ResolvedInput {
            input,
            state: InputState::Published(state),
        });
        let resolved = ResolvedComposition {
            composed: &composed,
            revision: self.revision.clone(),
            inputs: inputs.collect(),
        };
        let composed = compose(&resolved, reader, Some(transaction), reusable, fetched).await?;
        Ok(NewContent {
            rendering: Arc::new(composed.rendering),
            inputs: composed.inputs,
            notices: Some(choice.packages.notices),
            empty_layers: None,
        })
    }

    fn newest(&self) -> SourceInput {
        SourceInput {
            catalog: self.source.of.clone(),
            content_hash: self.newest.content_hash,
            snapshot: self.newest.snapshot,
        }
    }

    fn input(&self, state: &Previous) -> SourceInput {
        source_input(self.source, state)
    }
}

fn source_input(source: &RingSource, state: &Previous) -> SourceInput {
    SourceInput {
        catalog: source.of.clone(),
        content_hash: state.content_hash,
        snapshot: state.snapshot,
    }
}
