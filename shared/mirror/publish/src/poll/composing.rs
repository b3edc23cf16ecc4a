//! Composition of a catalog from published catalogs and from sources.

use std::sync::Arc;

use compose::Explanation;
use model::{
    CatalogName, Current, EmptyLayers, ObjectRef, Outcome, Sha256, Snapshot, SourceInput,
    text::chain,
};
use render::Rendering;
use serde::Serialize;
use source::Digest;
use store::{ReadError, Store, read_stored};
use work::{Budget, run};

use super::facts::NewContent;
use super::inputs::{InputCatalog, render_composition};
use super::once::Poll;
use super::pull::{PublishedShards, pull};
use crate::{
    Catalog, ComposedInput, ComposedSource, InputPlace, InputRole, Mirror, PollError, PollOptions,
    PublishError, PulledSource, Transaction, status::read_status, transaction::Pointer,
};

/// Version of the meaning of a composition. It grows when the same composition would give another
/// catalog.
const COMPOSE_VERSION: u32 = 1;

/// Maximum number of notices of a composition in the log.
const NOTICES_MAX: usize = 20;

/// Inputs and additions of a composition as a poll found them.
#[derive(Debug)]
pub(crate) struct ResolvedInputs<'c> {
    /// Revision of the composition: it changes with the composition and with the content of each
    /// input.
    pub(crate) revision: Digest,
    /// Inputs, then additions, in the order of the composition.
    inputs: Vec<ResolvedInput<'c>>,
}

/// One input or addition, and its state.
#[derive(Debug)]
pub(crate) struct ResolvedInput<'c> {
    input: &'c ComposedInput,
    state: InputState<'c>,
}

/// State of one input or addition.
#[derive(Debug)]
enum InputState<'c> {
    /// State of a catalog in the store.
    Published(SourceInput),
    /// Source that is pulled for the composition alone, at one digest.
    Pulled(PulledInput<'c>),
}

/// Source of an input or addition, at one digest.
#[derive(Debug)]
pub(crate) struct PulledInput<'c> {
    pub(crate) pulled: &'c PulledSource,
    pub(crate) digest: Digest,
    /// Text by which errors name it, such as `add dir:team`.
    pub(crate) place: String,
}

/// Everything that decides the revision. Its JSON is hashed.
#[derive(Serialize)]
struct RevisionText<'a> {
    version: u32,
    composition: &'a compose::Composition,
    inputs: Vec<String>,
    additions: Vec<String>,
}

impl<'c> ResolvedInputs<'c> {
    /// Finds the state of each input and addition. `base` is what the composed catalog has
    /// published.
    ///
    /// # Errors
    /// [`PollError::Waiting`] for an input that cannot be used now, and the errors of store and
    /// registry.
    pub(crate) async fn find(
        mirror: &Mirror,
        catalog: &Catalog,
        composed: &'c ComposedSource,
        base: Option<&Current>,
    ) -> Result<Self, PollError> {
        let mut inputs = Vec::new();
        for input in &composed.inputs {
            let state = match &input.place {
                InputPlace::Published { name, pin } => {
                    InputState::Published(published_input(mirror, name, *pin, base).await?)
                }
                InputPlace::Pulled(pulled) => {
                    let place = format!("{} {}", input.role, input.name);
                    let digest = mirror.resolve(catalog, &pulled.source).await;
                    InputState::Pulled(PulledInput {
                        pulled,
                        digest: digest.map_err(|error| error.at(&place))?,
                        place,
                    })
                }
            };
            inputs.push(ResolvedInput { input, state });
        }
        let revisions = |role| {
            let of_role = inputs
                .iter()
                .filter(|resolved: &&ResolvedInput<'_>| resolved.input.role == role);
            of_role.map(ResolvedInput::revision).collect()
        };
        let text = serde_json::to_vec(&RevisionText {
            version: COMPOSE_VERSION,
            composition: &composed.composition,
            inputs: revisions(InputRole::Input),
            additions: revisions(InputRole::Addition),
        });
        let revision = Digest::of(&text.expect("a composition has only names and texts"));
        Ok(Self { revision, inputs })
    }

    /// Returns the published states, for `current.json`.
    pub(crate) fn published(&self) -> Vec<SourceInput> {
        let published = self
            .inputs
            .iter()
            .filter_map(|resolved| match &resolved.state {
                InputState::Published(input) => Some(input.clone()),
                InputState::Pulled(_) => None,
            });
        published.collect()
    }

    /// Returns the inputs and additions that have to be pulled.
    pub(crate) fn pulled(&self) -> impl Iterator<Item = &PulledInput<'c>> {
        self.inputs
            .iter()
            .filter_map(|resolved| match &resolved.state {
                InputState::Published(_) => None,
                InputState::Pulled(pulled) => Some(pulled),
            })
    }
}

impl ResolvedInput<'_> {
    fn revision(&self) -> String {
        match &self.state {
            InputState::Published(input) => input.content_hash.to_string(),
            InputState::Pulled(PulledInput { pulled, digest, .. }) => match &pulled.policy {
                // Under another policy the same image is another revision, so that its signatures
                // are verified again.
                Some(policy) => format!("{digest} {}", policy.hash()),
                None => digest.to_string(),
            },
        }
    }
}

/// Returns the error of the first input whose own source is refused. Its published state is used
/// all the same, but the composition is not as new as its sources are.
pub(crate) async fn refused_input(
    store: &dyn Store,
    composed: &ComposedSource,
) -> Option<PollError> {
    for input in &composed.inputs {
        if let InputPlace::Published { name, pin: None } = &input.place
            && let Some(status) = read_status(store, name).await
            && status.outcome == Outcome::Refused
        {
            let error = status
                .error
                .unwrap_or_else(|| "its source was refused".to_owned());
            return Some(waiting(name, error));
        }
    }
    None
}

fn waiting(input: &CatalogName, reason: impl Into<String>) -> PollError {
    let (input, reason) = (input.to_string(), reason.into());
    PollError::Waiting { input, reason }
}

/// Returns the state of a published catalog at which the composition is now.
async fn published_input(
    mirror: &Mirror,
    name: &CatalogName,
    pin: Option<Sha256>,
    base: Option<&Current>,
) -> Result<SourceInput, PollError> {
    let store = &*mirror.store;
    let pointer = Pointer::read(store, name, mirror.settings.signer.as_ref()).await?;
    let Some(pointer) = pointer else {
        // The error of the input itself may name another one that it waits for.
        let status = read_status(store, name).await;
        let reason = match status.and_then(|status| status.error) {
            Some(error) => format!("it was never published: {error}"),
            None => "the store has no such catalog; configure it, or copy it with sync or import"
                .to_owned(),
        };
        return Err(waiting(name, reason));
    };
    if !pointer.signature_verified {
        return Err(waiting(
            name,
            "its current.json is not signed by a trusted key",
        ));
    }
    let Some(current) = pointer.current else {
        return Err(waiting(name, "its current.json is damaged"));
    };
    if !current.availability.is_available() {
        return Err(waiting(name, "it is Unavailable"));
    }
    let input = |content_hash, snapshot| SourceInput {
        catalog: name.clone(),
        content_hash,
        snapshot,
    };
    let Some(pin) = pin else {
        return Ok(input(current.content_hash, current.snapshot));
    };
    let own = base.into_iter().flat_map(|base| &base.source.inputs);
    let own = own.filter(|input| input.catalog == *name && input.content_hash == pin);
    let known = current
        .snapshots_of(pin)
        .chain(own.map(|input| input.snapshot));
    let is_there = async |snapshot: ObjectRef| {
        Ok::<_, ReadError>(store.head(&snapshot.key()).await?.is_some())
    };
    for snapshot in known {
        if is_there(snapshot).await? {
            return Ok(input(pin, snapshot));
        }
    }
    let mut kept = vec![current.content_hash.to_string()];
    for previous in &current.previous {
        let hash = previous.content_hash.to_string();
        if !kept.contains(&hash) && is_there(previous.snapshot).await? {
            kept.push(hash);
        }
    }
    let kept = kept.join(", ");
    let reason = format!("the store does not keep {pin} of it; it keeps {kept}");
    Err(waiting(name, reason))
}

impl Mirror {
    /// Composes a catalog without publishing it, from the inputs that a poll would take, and
    /// explains the result. Renders it if `render` is true.
    ///
    /// # Errors
    /// Those of a poll.
    ///
    /// # Panics
    /// If the catalog is no composition.
    pub async fn compose(
        &self,
        catalog: &Catalog,
        render: bool,
    ) -> Result<(Option<Rendering>, Explanation), PollError> {
        let composed = catalog
            .source
            .composed()
            .expect("the catalog is a composition");
        let budget = self.budget(catalog);
        let mut poll = Poll::new(self, catalog, PollOptions::default());
        poll.inputs = Some(Arc::new(
            ResolvedInputs::find(self, catalog, composed, None).await?,
        ));
        if render {
            let (content, explanation) =
                compose_inputs(&mut poll, composed, None, None, &budget).await?;
            return Ok((Some(content.rendering), explanation));
        }
        let (_, mut catalogs) = read_inputs(&mut poll, None, &budget).await?;
        let (composition, own) = (composed.composition.clone(), budget.clone());
        let explained = run(budget, move || {
            let mut explanation = Explanation::with_decisions();
            let composed = compose::compose(
                &composition,
                &mut catalogs,
                &mut explanation,
                &mut |_, _| Ok(()),
                &own,
            );
            composed.map(|()| explanation)
        });
        Ok((None, explained.await??))
    }
}

/// Composes and renders the catalog of a poll, and explains the result. Shards of `previous` are
/// used again. Without a transaction nothing of it is published.
///
/// # Errors
/// [`PollError::Compose`] if the composition does not fit its inputs, [`PollError::Waiting`] for an
/// input that is not stored any more, and the errors of pulling and rendering.
pub(crate) async fn compose_inputs(
    poll: &mut Poll<'_>,
    composed: &ComposedSource,
    transaction: Option<&Transaction>,
    previous: Option<&Snapshot>,
    budget: &Budget,
) -> Result<(NewContent, Explanation), PollError> {
    let (inputs, mut catalogs) = read_inputs(poll, transaction, budget).await?;
    let known = inputs.iter().map(|snapshot| &**snapshot).chain(previous);
    let stored = PublishedShards::new(poll.mirror.store.clone(), known, previous);
    let renderer = poll.renderer(stored, budget);
    let (composition, own) = (composed.composition.clone(), budget.clone());
    let work = move || render_composition(&composition, &mut catalogs, renderer, &own);
    let (rendering, explanation) = run(budget.clone(), work).await??;
    Ok((NewContent { rendering, inputs }, explanation))
}

/// Returns the snapshots of the published inputs, and all inputs and additions.
async fn read_inputs(
    poll: &mut Poll<'_>,
    transaction: Option<&Transaction>,
    budget: &Budget,
) -> Result<(Vec<Arc<Snapshot>>, Vec<InputCatalog>), PollError> {
    let inputs = poll
        .inputs
        .clone()
        .expect("the inputs were found for the revision");
    let (mut snapshots, mut catalogs) = (Vec::new(), Vec::new());
    for resolved in &inputs.inputs {
        let name = resolved.input.name.clone();
        catalogs.push(match &resolved.state {
            InputState::Published(input) => {
                let snapshot = published(&*poll.mirror.store, input, transaction).await?;
                snapshots.push(snapshot.clone());
                let shards = Box::new(PublishedShards::new(poll.mirror.store.clone(), [], None));
                InputCatalog::Published {
                    name,
                    shards,
                    snapshot,
                }
            }
            InputState::Pulled(input) => {
                let stored = PublishedShards::new(poll.mirror.store.clone(), [], None);
                let renderer = poll.renderer(stored, budget);
                let empty = EmptyLayers::default();
                let source = &input.pulled.source;
                let pulled = pull(poll, source, &input.digest, &empty, renderer, None).await;
                let (rendering, _) = pulled.map_err(|error| error.at(&input.place))?;
                InputCatalog::Rendered { name, rendering }
            }
        });
    }
    Ok((snapshots, catalogs))
}

/// Reads the Snapshot of an input, and makes sure that collection keeps what it names until the
/// commit.
async fn published(
    store: &dyn Store,
    input: &SourceInput,
    transaction: Option<&Transaction>,
) -> Result<Arc<Snapshot>, PollError> {
    if let Some(transaction) = transaction {
        transaction.claim([input.snapshot]).await?;
    }
    let snapshot: Snapshot = match read_stored(store, &input.snapshot.digest).await {
        Ok(snapshot) => snapshot,
        Err(error) if error.is_not_found() || error.is_damage() => {
            return Err(waiting(&input.catalog, chain(&error)));
        }
        Err(error) => return Err(PublishError::from(error).into()),
    };
    if let Some(transaction) = transaction {
        let objects = snapshot.objects().into_iter().map(|entry| entry.object);
        transaction.claim(objects).await?;
    }
    Ok(Arc::new(snapshot))
}

/// Logs the first notices of a composition that a poll made.
pub(crate) fn log_notices(explanation: &Explanation) {
    for notice in explanation.notices.iter().take(NOTICES_MAX) {
        tracing::info!(%notice, "composed");
    }
    let more = explanation.notices.len().saturating_sub(NOTICES_MAX) + explanation.more_notices;
    if more > 0 {
        tracing::info!(
            more,
            "`catalog-mirror compose --explain` prints the other notices"
        );
    }
}
