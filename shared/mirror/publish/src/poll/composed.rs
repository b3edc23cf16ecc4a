//! Composition of a catalog from published catalogs and from sources that are pulled for it.

use std::sync::Arc;

use compose::{ComposeError, Explanation};
use model::text::{self, chain};
use model::{EmptyLayers, Snapshot, SourceInput};
use render::{NoStoredShards, Rendering};
use store::{Store, read_stored};
use work::run;

use super::fetched::Fetched;
use super::inputs::{InputCatalog, render_composition};
use super::pull::PublishedShards;
use super::pulled::ContentReader;
use super::resolved::{InputState, ResolvedComposition, ResolvedInput, waiting};
use crate::{PollError, PublishError, Transaction};

/// Maximum number of notices of a composition in a log, a report or `status.json`.
const NOTICES_MAX: usize = 20;

/// Maximum number of characters of a notice. Names in it are foreign.
const NOTICE_CHARS: usize = 1000;

/// Catalog that was composed, and rendered.
pub struct ComposedCatalog {
    /// Content of the catalog.
    pub rendering: Rendering,
    /// Reasons for what is in it, and what its author should know.
    pub explanation: Explanation,
    /// Published states that it was composed of.
    pub(super) inputs: Vec<Arc<Snapshot>>,
}

/// Composes and renders a catalog. Shards of `previous` are used again. Without a transaction
/// nothing of it is published.
///
/// # Errors
/// [`PollError::Compose`] if the composition does not fit its inputs, [`PollError::Waiting`] for an
/// input that is not stored any more, and the errors of pulling and rendering.
pub(super) async fn compose(
    resolved: &ResolvedComposition<'_>,
    reader: &ContentReader,
    transaction: Option<&Transaction>,
    previous: Option<&Snapshot>,
    fetched: &mut Fetched,
) -> Result<ComposedCatalog, PollError> {
    let mut catalogs = read_inputs(resolved, reader, transaction, fetched).await?;
    let inputs: Vec<Arc<Snapshot>> = catalogs.iter().filter_map(InputCatalog::snapshot).collect();
    let known = inputs.iter().map(|snapshot| &**snapshot).chain(previous);
    let stored = PublishedShards::new(reader.store.clone(), known, previous);
    let renderer = reader.renderer(stored);
    let composition = resolved.composed.composition.clone();
    let budget = reader.settings.budget.clone();
    let composed = run(budget.clone(), move || {
        let mut explanation = Explanation::default();
        let rendering = render_composition(
            &composition,
            &mut catalogs,
            &mut explanation,
            renderer,
            &budget,
        )?;
        Ok::<_, PollError>(ComposedCatalog {
            rendering,
            explanation,
            inputs,
        })
    });
    composed.await?
}

/// Composes a catalog without rendering it. Returns the reason for each bundle that is in or out.
///
/// # Errors
/// As [`compose()`], without those of rendering.
pub(super) async fn explain(
    resolved: &ResolvedComposition<'_>,
    reader: &ContentReader,
) -> Result<Explanation, PollError> {
    let mut fetched = Fetched::default();
    let mut catalogs = read_inputs(resolved, reader, None, &mut fetched).await?;
    let composition = resolved.composed.composition.clone();
    let budget = reader.settings.budget.clone();
    let explained = run(budget.clone(), move || {
        let mut explanation = Explanation::with_decisions();
        compose::compose(
            &composition,
            &mut catalogs,
            &mut explanation,
            &mut |_, _| Ok(()),
            &budget,
        )?;
        Ok::<_, ComposeError>(explanation)
    });
    Ok(explained.await??)
}

/// Returns the inputs and additions, ready to be read package by package.
async fn read_inputs(
    resolved: &ResolvedComposition<'_>,
    reader: &ContentReader,
    transaction: Option<&Transaction>,
    fetched: &mut Fetched,
) -> Result<Vec<InputCatalog>, PollError> {
    let mut catalogs = Vec::new();
    for ResolvedInput { input, state } in &resolved.inputs {
        let name = input.name.clone();
        catalogs.push(match state {
            InputState::Published(state) => InputCatalog::Published {
                name,
                shards: Box::new(PublishedShards::new(reader.store.clone(), [], None)),
                snapshot: Arc::new(read_snapshot(&*reader.store, state, transaction).await?),
            },
            InputState::Pulled(revision) => {
                let renderer = reader.renderer(NoStoredShards);
                let empty = EmptyLayers::default();
                let read = reader.read(revision, &empty, renderer, None, fetched).await;
                InputCatalog::Rendered {
                    name,
                    rendering: read.map_err(|error| error.at(&input.label()))?.rendering,
                }
            }
        });
    }
    Ok(catalogs)
}

/// Reads the Snapshot of an input, and makes sure that collection keeps what it names until the
/// commit.
pub(super) async fn read_snapshot(
    store: &dyn Store,
    input: &SourceInput,
    transaction: Option<&Transaction>,
) -> Result<Snapshot, PollError> {
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
    Ok(snapshot)
}

/// Returns the first notices of a composition for logs, reports and `status.json`.
pub(super) fn first_notices(explanation: &Explanation) -> Vec<String> {
    let first = explanation.notices.iter().take(NOTICES_MAX);
    let mut notices: Vec<String> = first
        .map(|notice| text::line(notice, NOTICE_CHARS))
        .collect();
    let more = explanation.notices.len().saturating_sub(NOTICES_MAX) + explanation.more_notices;
    if more > 0 {
        notices.push(format!(
            "and {more} more, which `catalog-mirror compose --explain` prints"
        ));
    }
    notices
}
