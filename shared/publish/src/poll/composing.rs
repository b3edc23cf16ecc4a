//! Composition of a catalog from published catalogs and from sources.

use std::sync::Arc;

use compose::Explanation;
use model::{CatalogName, Current, ObjectRef, Outcome, Sha256, Snapshot, SourceInput, text::chain};
use render::{Renderer, StopFlag};
use serde::Serialize;
use source::{Digest, Source};
use store::{Store, read_stored};

use super::{
    catalog_source::{ComposedSource, InputPlace},
    copies::ImageCopies,
    facts::NewContent,
    inputs::{InputCatalog, NamedInput, render_composition},
    pull::{PullWork, pull},
    stored_shards::PublishedShards,
};
use crate::{Catalog, Mirror, PollError, PublishError, Report, Transaction, status::read_status, transaction::Pointer};

/// Version of the meaning of a composition. It grows when the same composition would give another catalog.
const COMPOSE_VERSION: u32 = 1;

/// Maximum number of notices of a composition in the log.
const NOTICES_MAX: usize = 20;

/// Inputs of a composition as a poll found them.
#[derive(Debug)]
pub(crate) struct ResolvedInputs {
    /// Revision of the composition: it changes with the composition and with the content of each input.
    pub(crate) revision: Digest,
    /// State of each input, in the order of the composition.
    inputs: Vec<InputState>,
    /// Digest of each addition, in the order of the composition.
    additions: Vec<Digest>,
}

/// State of one input.
#[derive(Debug, Clone)]
enum InputState {
    Published(SourceInput),
    Pulled(Digest),
}

/// Everything that decides the revision. Its JSON is hashed.
#[derive(Serialize)]
struct RevisionText<'a> {
    version: u32,
    composition: &'a compose::Composition,
    inputs: Vec<String>,
    additions: Vec<String>,
}

impl ResolvedInputs {
    /// Finds the state of each input and addition. `base` is what the composed catalog has published.
    ///
    /// # Errors
    /// [`PollError::Waiting`] for an input that cannot be used now, and the errors of store and registry.
    pub(crate) async fn find(
        mirror: &Mirror,
        catalog: &Catalog,
        composed: &ComposedSource,
        base: Option<&Current>,
    ) -> Result<Self, PollError> {
        let (mut inputs, mut additions) = (Vec::new(), Vec::new());
        let mut text = RevisionText {
            version: COMPOSE_VERSION,
            composition: &composed.composition,
            inputs: Vec::new(),
            additions: Vec::new(),
        };
        for place in &composed.inputs {
            match place {
                InputPlace::Published { name, pin } => {
                    let input = published_input(mirror, name, *pin, base).await?;
                    text.inputs.push(input.content_hash.to_string());
                    inputs.push(InputState::Published(input));
                }
                InputPlace::Pulled(pulled) => {
                    let digest = mirror.resolve(catalog, pulled_source(pulled)).await?;
                    text.inputs.push(pulled_revision(pulled, &digest));
                    inputs.push(InputState::Pulled(digest));
                }
            }
        }
        for addition in &composed.additions {
            let digest = mirror.resolve(catalog, pulled_source(addition)).await?;
            text.additions.push(pulled_revision(addition, &digest));
            additions.push(digest);
        }
        let text = serde_json::to_vec(&text).expect("a composition has only names and texts");
        Ok(Self {
            revision: Digest::of(&text),
            inputs,
            additions,
        })
    }

    /// Returns the published states, for `current.json`.
    pub(crate) fn published(&self) -> Vec<SourceInput> {
        let published = self.inputs.iter().filter_map(|input| match input {
            InputState::Published(input) => Some(input.clone()),
            InputState::Pulled(_) => None,
        });
        published.collect()
    }

    /// Returns what has to be pulled, with its digest.
    pub(crate) fn pulled<'d, 'c>(&'d self, composed: &'c ComposedSource) -> impl Iterator<Item = PulledInput<'d, 'c>> {
        let inputs = self.inputs.iter().zip(&composed.inputs);
        let inputs = inputs.filter_map(|(state, place)| match (state, place) {
            (InputState::Pulled(digest), InputPlace::Pulled(catalog)) => Some(PulledInput { catalog, digest }),
            _ => None,
        });
        let additions = self.additions.iter().zip(&composed.additions);
        inputs.chain(additions.map(|(digest, catalog)| PulledInput { catalog, digest }))
    }
}

/// Input or addition that is pulled for a composition alone.
pub(crate) struct PulledInput<'d, 'c> {
    pub(crate) catalog: &'c Catalog,
    pub(crate) digest: &'d Digest,
}

/// Returns the revision of what is pulled. Under another policy the same image is another revision, so that its signatures are
/// verified again.
fn pulled_revision(pulled: &Catalog, digest: &Digest) -> String {
    match &pulled.policy {
        Some(policy) => format!("{digest} {}", policy.hash()),
        None => digest.to_string(),
    }
}

/// Returns the error of the first input whose own source is refused. Its published state is used all the same, but the
/// composition is not as new as its sources are.
pub(crate) async fn refused_input(store: &dyn Store, composed: &ComposedSource) -> Option<PollError> {
    for place in &composed.inputs {
        let InputPlace::Published { name, pin: None } = place else {
            continue;
        };
        let status = read_status(store, name).await;
        if let Some(status) = status.filter(|status| status.outcome == Outcome::Refused) {
            let error = status.error.unwrap_or_else(|| "its source was refused".to_owned());
            return Some(waiting(name, error));
        }
    }
    None
}

fn waiting(input: &CatalogName, reason: impl Into<String>) -> PollError {
    PollError::Waiting {
        input: input.to_string(),
        reason: reason.into(),
    }
}

fn pulled_source(pulled: &Catalog) -> &Source {
    pulled.source.pulled().expect("what a composition pulls is a source")
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
        return Err(unpublished(store, name).await);
    };
    if !pointer.signature_verified {
        return Err(waiting(name, "its current.json is not signed by a trusted key"));
    }
    let Some(current) = pointer.current else {
        return Err(waiting(name, "its current.json is damaged"));
    };
    if !current.availability.is_available() {
        return Err(waiting(name, "it is Unavailable"));
    }
    let Some(pin) = pin else {
        return Ok(SourceInput {
            catalog: name.clone(),
            content_hash: current.content_hash,
            snapshot: current.snapshot,
        });
    };
    let own = base.into_iter().flat_map(|base| &base.source.inputs);
    let own = own.filter(|input| input.catalog == *name && input.content_hash == pin);
    let known = current.snapshots_of(pin).chain(own.map(|input| input.snapshot));
    for snapshot in known {
        if is_stored(store, &snapshot).await? {
            return Ok(SourceInput {
                catalog: name.clone(),
                content_hash: pin,
                snapshot,
            });
        }
    }
    let mut kept = vec![current.content_hash.to_string()];
    for previous in &current.previous {
        let hash = previous.content_hash.to_string();
        if !kept.contains(&hash) && is_stored(store, &previous.snapshot).await? {
            kept.push(hash);
        }
    }
    let kept = kept.join(", ");
    Err(waiting(
        name,
        format!("the store does not keep {pin} of it; it keeps {kept}"),
    ))
}

async fn is_stored(store: &dyn Store, object: &ObjectRef) -> Result<bool, PollError> {
    match store.head(&object.key()).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error for an input that the store does not have. The error of the input itself may name another one that it waits
/// for.
async fn unpublished(store: &dyn Store, name: &CatalogName) -> PollError {
    let status = read_status(store, name).await;
    match status.and_then(|status| status.error) {
        Some(error) => waiting(name, format!("it was never published: {error}")),
        None => waiting(
            name,
            "the store has no such catalog; configure it, or copy it with sync or import",
        ),
    }
}

/// Work of composing one catalog.
pub(crate) struct Composing<'a> {
    pub(crate) mirror: &'a Mirror,
    pub(crate) catalog: &'a Catalog,
    pub(crate) composed: &'a ComposedSource,
    pub(crate) inputs: &'a ResolvedInputs,
    pub(crate) copies: &'a ImageCopies,
    pub(crate) transaction: &'a Transaction,
    /// Snapshot whose shards may be used again; `None` if one of them may be damaged.
    pub(crate) previous: Option<&'a Snapshot>,
    pub(crate) stop: &'a StopFlag,
    pub(crate) report: &'a mut Report,
}

impl Composing<'_> {
    /// Composes and renders the catalog.
    ///
    /// # Errors
    /// [`PollError::Compose`] if the composition does not fit its inputs, [`PollError::Waiting`] for an input that is not stored
    /// any more, and the errors of pulling and rendering.
    pub(crate) async fn run(mut self) -> Result<NewContent, PollError> {
        let mut snapshots = Vec::new();
        let (mut inputs, mut additions) = (Vec::new(), Vec::new());
        for (at, state) in self.inputs.inputs.iter().enumerate() {
            let name = self.composed.composition.inputs[at].name().to_owned();
            let catalog = match (state, &self.composed.inputs[at]) {
                (InputState::Published(input), _) => {
                    let snapshot = self.published(input).await?;
                    snapshots.push(snapshot.clone());
                    InputCatalog::published(self.mirror.store.clone(), snapshot)
                }
                (InputState::Pulled(digest), InputPlace::Pulled(pulled)) => self.pulled(pulled, digest).await?,
                (InputState::Pulled(_), InputPlace::Published { .. }) => {
                    unreachable!("the states were found for these places")
                }
            };
            inputs.push(NamedInput { name, catalog });
        }
        for (addition, digest) in self.composed.additions.iter().zip(&self.inputs.additions) {
            additions.push(NamedInput {
                name: addition.source.to_string(),
                catalog: self.pulled(addition, digest).await?,
            });
        }
        let known = snapshots.iter().map(|snapshot| &**snapshot).chain(self.previous);
        let stored = PublishedShards::new(self.mirror.store.clone(), known);
        let renderer = Renderer::start(self.mirror.render_settings(self.catalog, self.stop), Arc::new(stored));
        let composition = self.composed.composition.clone();
        let work = move || render_composition(&composition, &mut inputs, &mut additions, renderer);
        let composed = tokio::task::spawn_blocking(work).await??;
        log_notices(&composed.explanation);
        Ok(NewContent {
            rendering: composed.rendering,
            inputs: snapshots,
        })
    }

    /// Reads the Snapshot of an input, and makes sure that collection keeps what it names until the commit.
    async fn published(&self, input: &SourceInput) -> Result<Arc<Snapshot>, PollError> {
        self.transaction.claim([input.snapshot]).await?;
        let snapshot: Snapshot = match read_stored(&*self.mirror.store, &input.snapshot.digest).await {
            Ok(snapshot) => snapshot,
            Err(error) if error.is_not_found() || error.is_damage() => {
                return Err(waiting(&input.catalog, chain(&error)));
            }
            Err(error) => return Err(PublishError::from(error).into()),
        };
        let objects = snapshot.objects().into_iter().map(|entry| entry.object);
        self.transaction.claim(objects).await?;
        Ok(Arc::new(snapshot))
    }

    async fn pulled(&mut self, pulled: &Catalog, digest: &Digest) -> Result<InputCatalog, PollError> {
        let work = PullWork {
            images: self.mirror.images(self.catalog),
            from: self.copies.source(pulled_source(pulled), digest),
            known: &model::EmptyLayers::default(),
            stop: self.stop,
            report: self.report,
        };
        let stored = PublishedShards::new(self.mirror.store.clone(), []);
        let pulled = pull(self.mirror, self.catalog, digest, Arc::new(stored), work).await?;
        Ok(InputCatalog::Rendered(pulled.rendering))
    }
}

fn log_notices(explanation: &Explanation) {
    for notice in explanation.notices.iter().take(NOTICES_MAX) {
        tracing::info!(%notice, "composed");
    }
    let more = explanation.notices.len().saturating_sub(NOTICES_MAX);
    if more > 0 {
        tracing::info!(more, "`catalog-mirror compose --explain` prints the other notices");
    }
}
