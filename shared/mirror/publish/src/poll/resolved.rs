//! States of the inputs of a composition, and the revision that follows from them.

use model::{CatalogName, Current, EmptyLayers, ObjectRef, Outcome, Sha256, SourceInput};
use serde::Serialize;
use source::{Digest, Sources};
use store::{ReadError, Store};

use super::fetched::{Fetched, PulledRevision};
use super::mirror::Mirror;
use super::signatures::verify;
use crate::{
    ComposedInput, ComposedSource, InputPlace, InputRole, PollError, status::read_status,
    transaction::Pointer,
};

/// Version of the meaning of a composition. It grows when the same composition would give another
/// catalog.
const COMPOSE_VERSION: u32 = 1;

/// A composition, and its inputs and additions as a poll found them.
#[derive(Debug)]
pub(super) struct ResolvedComposition<'c> {
    pub(super) composed: &'c ComposedSource,
    /// Changes with the composition and with the content of each input.
    pub(super) revision: Digest,
    /// Inputs, then additions, in the order of the composition.
    pub(super) inputs: Vec<ResolvedInput<'c>>,
}

/// One input or addition, and its state.
#[derive(Debug)]
pub(super) struct ResolvedInput<'c> {
    pub(super) input: &'c ComposedInput,
    pub(super) state: InputState<'c>,
}

/// State of one input or addition.
#[derive(Debug)]
pub(super) enum InputState<'c> {
    /// State of a catalog in the store.
    Published(SourceInput),
    /// Source that is pulled for the composition alone.
    Pulled(PulledRevision<'c>),
}

/// Everything that decides the revision. Its JSON is hashed.
#[derive(Serialize)]
struct RevisionText<'a> {
    version: u32,
    composition: &'a compose::Composition,
    target: Option<&'a str>,
    inputs: Vec<String>,
    additions: Vec<String>,
}

impl<'c> ResolvedComposition<'c> {
    /// Finds the state of each input and addition. `base` is what the composed catalog has
    /// published.
    ///
    /// # Errors
    /// [`PollError::Waiting`] for an input that cannot be used now, and the errors of store and
    /// registry.
    pub(super) async fn find(
        mirror: &Mirror,
        images: &Sources,
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
                    let digest = mirror.resolve(images, &pulled.source).await;
                    InputState::Pulled(PulledRevision {
                        pulled,
                        digest: digest.map_err(|error| error.at(&input.label()))?,
                    })
                }
            };
            inputs.push(ResolvedInput { input, state });
        }
        let text = RevisionText {
            version: COMPOSE_VERSION,
            composition: &composed.composition,
            target: composed.target.as_deref(),
            inputs: revisions(&inputs, InputRole::Input),
            additions: revisions(&inputs, InputRole::Addition),
        };
        let text = serde_json::to_vec(&text).expect("a composition has only names and texts");
        Ok(Self {
            composed,
            revision: Digest::of(&text),
            inputs,
        })
    }

    /// Verifies the signatures of each image that is pulled and has a policy.
    pub(super) async fn verify_inputs(&self, images: &Sources) -> Result<(), PollError> {
        for ResolvedInput { input, state } in &self.inputs {
            if let InputState::Pulled(revision) = state {
                let verified = verify(images, revision, None).await;
                verified.map_err(|error| error.at(&input.label()))?;
            }
        }
        Ok(())
    }

    /// Copies each image that is pulled from its registry to disk.
    pub(super) async fn copy_inputs(
        &self,
        images: &Sources,
        fetched: &mut Fetched,
    ) -> Result<(), PollError> {
        for ResolvedInput { input, state } in &self.inputs {
            if let InputState::Pulled(revision) = state {
                let copied = fetched
                    .copy(images, revision, &EmptyLayers::default())
                    .await;
                copied.map_err(|error| error.at(&input.label()))?;
            }
        }
        Ok(())
    }

    /// Returns the published states, for `current.json`.
    pub(super) fn published(&self) -> Vec<SourceInput> {
        let states = self.inputs.iter().map(|resolved| &resolved.state);
        states
            .filter_map(|state| match state {
                InputState::Published(input) => Some(input.clone()),
                InputState::Pulled(_) => None,
            })
            .collect()
    }
}

/// Returns the revisions of the inputs or of the additions.
fn revisions(inputs: &[ResolvedInput<'_>], role: InputRole) -> Vec<String> {
    let of_role = inputs.iter().filter(|input| input.input.role == role);
    of_role.map(|input| input.state.revision()).collect()
}

impl InputState<'_> {
    fn revision(&self) -> String {
        match self {
            Self::Published(input) => input.content_hash.to_string(),
            Self::Pulled(PulledRevision { pulled, digest }) => match &pulled.policy {
                // Under another policy the same image is another revision, so that its signatures
                // are verified again.
                Some(policy) => format!("{digest} {}", policy.hash()),
                None => digest.to_string(),
            },
        }
    }
}

/// Fails if the source of an input is refused, with the error of the first one. Its published state
/// is used all the same, but the composition is not as new as its sources are.
pub(super) async fn refuse_stale_input(
    store: &dyn Store,
    composed: &ComposedSource,
) -> Result<(), PollError> {
    for input in &composed.inputs {
        if let InputPlace::Published { name, pin: None } = &input.place
            && let Some(status) = read_status(store, name).await
            && status.outcome == Outcome::Refused
        {
            let error = status
                .error
                .unwrap_or_else(|| "its source was refused".to_owned());
            return Err(waiting(name, error));
        }
    }
    Ok(())
}

/// Returns the error of an input that cannot be used now.
pub(super) fn waiting(input: &CatalogName, reason: impl Into<String>) -> PollError {
    PollError::Waiting {
        input: input.to_string(),
        reason: reason.into(),
    }
}

/// Returns the state of a published catalog at which the composition is now.
async fn published_input(
    mirror: &Mirror,
    name: &CatalogName,
    pin: Option<Sha256>,
    base: Option<&Current>,
) -> Result<SourceInput, PollError> {
    let store = &*mirror.store;
    let current = published_pointer(mirror, name).await?;
    let Some(pin) = pin else {
        return Ok(SourceInput {
            catalog: name.clone(),
            content_hash: current.content_hash,
            snapshot: current.snapshot,
        });
    };
    let composed_of = base.into_iter().flat_map(|base| &base.source.inputs);
    let own = composed_of.filter(|input| input.catalog == *name && input.content_hash == pin);
    let known = current
        .snapshots_of(pin)
        .chain(own.map(|input| input.snapshot));
    for snapshot in known {
        if is_stored(store, &snapshot).await? {
            return Ok(SourceInput {
                catalog: name.clone(),
                content_hash: pin,
                snapshot,
            });
        }
    }
    let kept = stored_states(store, &current).await?.join(", ");
    let reason = format!("the store does not keep {pin} of it; it keeps {kept}");
    Err(waiting(name, reason))
}

/// Returns the pointer of a published catalog that can be used now.
///
/// # Errors
/// [`PollError::Waiting`] if there is none, or if it is not trusted, damaged or unavailable.
pub(super) async fn published_pointer(
    mirror: &Mirror,
    name: &CatalogName,
) -> Result<Current, PollError> {
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
    Ok(current)
}

/// Returns the content hashes that the store keeps of a catalog, each once and the newest first.
async fn stored_states(store: &dyn Store, current: &Current) -> Result<Vec<String>, ReadError> {
    let mut kept = vec![current.content_hash.to_string()];
    for previous in &current.previous {
        let hash = previous.content_hash.to_string();
        if !kept.contains(&hash) && is_stored(store, &previous.snapshot).await? {
            kept.push(hash);
        }
    }
    Ok(kept)
}

async fn is_stored(store: &dyn Store, snapshot: &ObjectRef) -> Result<bool, ReadError> {
    Ok(store.head(&snapshot.key()).await?.is_some())
}
