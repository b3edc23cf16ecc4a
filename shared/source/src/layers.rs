//! The layers of one image, fetched concurrently and applied from the top down.
//!
//! ```text
//! top    fetch -> scan ----- state -----> next layer
//! middle fetch -> scan up to the first entry that matters, then wait for the state
//! base   fetch -> scan ...
//! ```
//!
//! The state (overlay and sink) passes from each verified layer to the next lower one. So base layers are fetched and
//! scanned while upper ones are still being read, and the order is strict all the same.

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::mem::replace;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use oci::{
    BlobRef, FileSink, ImageError, ImageManifest, LayerScan, OverlayState, Root, UnpackBudget, UnpackError, shown,
};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;
use work::Budget;

use crate::blob_source::{BlobSource, StreamEnd};
use crate::error::Error;
use crate::settings::SourceSettings;
use crate::sources::Pull;
use crate::stream::{CHUNKS_AHEAD, bounded, reader_of};

/// Number of layers that are fetched at a time, as in docker.
pub(crate) const SIDE_BY_SIDE: usize = 3;

/// Reads all layers of `image` that may matter. Returns only after every fetched layer was verified.
pub(crate) async fn read<S: FileSink + 'static>(
    blobs: &BlobSource,
    image: &ImageManifest,
    root: Root,
    empty: &BTreeSet<String>,
    sink: S,
    settings: &SourceSettings,
) -> Result<(S, Pull), Error> {
    let budget = Arc::new(UnpackBudget::new(&settings.limits, Budget::default()));
    let (first, mut above) = oneshot::channel();
    let mut pull = Pull::default();
    let mut turns = Vec::new();
    for (depth, layer) in from_the_top(image).into_iter().enumerate() {
        if empty.contains(layer.digest.as_str()) {
            pull.layers_skipped += 1;
            pull.empty_layers.empty.insert(layer.digest.to_string());
            continue;
        }
        let (below, next) = oneshot::channel();
        let scan = LayerScan {
            depth,
            layer: layer.clone(),
            root: root.clone(),
            budget: Arc::clone(&budget),
        };
        turns.push(LayerTurn {
            scan,
            above: replace(&mut above, next),
            below,
        });
    }
    let count = turns.len();
    first.send(OverlayState::new(sink)).ok();
    // Collected first: a closure inside the stream would keep the whole future from being `Send`.
    let turns: Vec<_> = turns.into_iter().map(|turn| turn.run(blobs)).collect();
    let mut done = stream::iter(turns).buffered(SIDE_BY_SIDE);
    let mut last = None;
    while let Some(read) = done.try_next().await? {
        pull.layers_fetched += 1;
        pull.empty_layers.empty.extend(read.empty);
        if read.last.is_some() {
            last = read.last;
            break;
        }
    }
    // Ends the fetches of layers that cannot matter any more.
    drop(done);
    pull.layers_skipped += count - pull.layers_fetched;
    let state = match last {
        Some(state) => state,
        None => above
            .await
            .map_err(|_| ImageError::NoRoot(shown(root.path().as_bytes())))?,
    };
    state.check_root(&root, ImageError::NoRoot, ImageError::RootNotDirectory)?;
    let limits = settings.limits.clone();
    let sink = bounded(&Budget::default(), move || state.finish(&root, &limits)).await?;
    Ok((sink, pull))
}

/// Returns the layers from the top. A layer that occurs twice is read once, at its upper place, because that hides all of
/// the lower one.
pub(crate) fn from_the_top(image: &ImageManifest) -> Vec<&BlobRef> {
    let mut seen = BTreeSet::new();
    let layers = image.layers.iter().rev();
    layers.filter(|layer| seen.insert(&layer.digest)).collect()
}

/// One layer of an image, and the channels to the layers above and below it.
struct LayerTurn<S> {
    scan: LayerScan,
    above: oneshot::Receiver<OverlayState<S>>,
    below: oneshot::Sender<OverlayState<S>>,
}

/// A layer that was read and verified.
struct LayerRead<S> {
    /// Digest of the layer, if it has nothing for the catalog.
    empty: Option<String>,
    /// The state, if nothing below can matter.
    last: Option<OverlayState<S>>,
}

/// The result of a scan: the state, or the channel that it will come from if the layer did not need it.
enum Scanned<S> {
    Empty(oneshot::Receiver<OverlayState<S>>),
    Changed(Box<OverlayState<S>>),
}

impl<S: FileSink + 'static> LayerTurn<S> {
    async fn run(self, blobs: &BlobSource) -> Result<LayerRead<S>, Error> {
        let span = tracing::debug_span!("layer", layer = %self.scan.layer.digest, bytes = self.scan.layer.size);
        self.read(blobs).instrument(span).await
    }

    async fn read(self, blobs: &BlobSource) -> Result<LayerRead<S>, Error> {
        let (to, from) = mpsc::channel(CHUNKS_AHEAD);
        let (layer, depth) = (self.scan.layer.clone(), self.scan.depth);
        let (scan, above) = (self.scan, self.above);
        let budget = scan.budget.work().clone();
        let raw = reader_of(from);
        let scanner = bounded(&budget, move || scan_layer(&scan, raw, above));
        let (fetched, scanned) = tokio::join!(blobs.stream(&layer, to), scanner);
        // First the fetch: its failure explains a failed scan, not the other way round.
        let (end, scanned) = (fetched?, scanned?);
        if end == StreamEnd::Unwanted {
            return Err(UnpackError::Abandoned.into());
        }
        let is_empty = matches!(scanned, Scanned::Empty(_));
        tracing::debug!(empty = is_empty, "read a layer");
        let state = match scanned {
            Scanned::Changed(state) => *state,
            Scanned::Empty(above) => above.await.map_err(|_| UnpackError::Abandoned)?,
        };
        let last = if state.is_closed_below(depth) {
            Some(state)
        } else {
            // The receiver is the next turn or `read`. Both outlive this turn unless the whole pull has failed.
            self.below.send(state).ok();
            None
        };
        let empty = is_empty.then(|| layer.digest.to_string());
        Ok(LayerRead { empty, last })
    }
}

/// Scans one layer on a blocking thread.
fn scan_layer<S: FileSink>(
    scan: &LayerScan,
    mut raw: impl BufRead,
    above: oneshot::Receiver<OverlayState<S>>,
) -> Result<Scanned<S>, UnpackError> {
    let mut above = Some(above);
    let scanned = scan.run(&mut raw, || above.take()?.blocking_recv().ok());
    if !matches!(scanned, Err(UnpackError::Abandoned)) {
        // To the end of the stream, because a wrong digest there explains the failure better.
        io::copy(&mut raw, &mut io::sink()).ok();
    }
    match (scanned?, above) {
        (Some(state), _) => Ok(Scanned::Changed(Box::new(state))),
        (None, Some(above)) => Ok(Scanned::Empty(above)),
        (None, None) => Err(UnpackError::Abandoned),
    }
}
