//! The layers of one image, fetched concurrently and applied from the top down.
//!
//! ```text
//! top    fetch -> scan ----- state -----> next layer
//! middle fetch -> scan up to the first entry that matters, then wait for the state
//! base   fetch -> scan ...
//! ```
//!
//! The state (overlay and sink) passes from each verified layer to the next lower one. So base
//! layers are fetched and scanned while upper ones are still being read, and the order is strict
//! all the same.

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::mem::replace;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use oci::{
    BlobRef, FileSink, ImageError, ImageManifest, LayerScan, OverlayState, Root, UnpackBudget,
    UnpackError,
};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;
use work::Budget;

use crate::blob_source::BlobSource;
use crate::stream::{CHUNKS_AHEAD, bounded, reader_of};
use crate::{Error, Pull, SourceSettings};

/// Number of layers that are fetched at a time, as in docker.
pub(crate) const SIDE_BY_SIDE: usize = 3;

/// Reads all layers of `image` that may matter. Returns only after every fetched layer was
/// verified.
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
    let mut reads = Vec::new();
    let mut sizes = Vec::new();
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
        sizes.push(layer.size);
        let span = tracing::debug_span!("layer", layer = %layer.digest, bytes = layer.size);
        reads.push(read_layer(blobs, scan, replace(&mut above, next), below).instrument(span));
    }
    let count = reads.len();
    let progress = blobs.progress();
    progress.expect(sizes.iter().sum());
    first.send(OverlayState::new(sink)).ok();
    let mut done = stream::iter(reads).buffered(SIDE_BY_SIDE);
    let mut last = None;
    while last.is_none()
        && let Some(read) = done.try_next().await?
    {
        pull.layers_fetched += 1;
        pull.empty_layers.empty.extend(read.empty);
        last = read.last;
    }
    // Ends the fetches of layers that cannot matter any more.
    drop(done);
    pull.layers_skipped += count - pull.layers_fetched;
    // Of a layer that was given up a part may be received.
    progress.skip(sizes.iter().skip(pull.layers_fetched).sum());
    let state = match last {
        Some(state) => state,
        None => above.await.map_err(|_| UnpackError::Abandoned)?,
    };
    state.check_root(&root, ImageError::NoRoot, ImageError::RootNotDirectory)?;
    let limits = settings.limits.clone();
    let sink = bounded(&Budget::default(), move || state.finish(&root, &limits)).await?;
    Ok((sink, pull))
}

/// Returns the layers from the top. A layer that occurs twice is read once, at its upper place,
/// because that hides all of the lower one.
pub(crate) fn from_the_top(image: &ImageManifest) -> Vec<&BlobRef> {
    let mut seen = BTreeSet::new();
    let layers = image.layers.iter().rev();
    layers.filter(|layer| seen.insert(&layer.digest)).collect()
}

/// A layer that was read and verified.
struct LayerRead<S> {
    /// Digest of the layer, if it has nothing for the catalog.
    empty: Option<String>,
    /// The state, if nothing below can matter.
    last: Option<OverlayState<S>>,
}

/// Fetches, scans and verifies one layer. Takes the state from the layer above it, and passes it to
/// the one below.
async fn read_layer<S: FileSink + 'static>(
    blobs: &BlobSource,
    scan: LayerScan,
    above: oneshot::Receiver<OverlayState<S>>,
    below: oneshot::Sender<OverlayState<S>>,
) -> Result<LayerRead<S>, Error> {
    let (to, from) = mpsc::channel(CHUNKS_AHEAD);
    let layer = scan.layer.clone();
    let depth = scan.depth;
    let budget = scan.budget.work.clone();
    let raw = reader_of(from);
    let scanner = bounded(&budget, move || scan_layer(&scan, raw, above));
    let (fetched, scanned) = tokio::join!(blobs.stream(&layer, to), scanner);
    let (state, is_empty) = match (fetched, scanned) {
        // A scan that reads no further has the reason.
        (Err(Error::Unpack(UnpackError::Abandoned)), Err(error)) => return Err(error),
        // Else the failure of the fetch explains that of the scan.
        (fetched, scanned) => fetched.and(scanned)?,
    };
    tracing::debug!(empty = is_empty, "read a layer");
    let last = if state.is_closed_below(depth) {
        Some(state)
    } else {
        // The receiver is the next layer or `read`. Both outlive this one unless the whole pull has
        // failed.
        below.send(state).ok();
        None
    };
    let empty = is_empty.then(|| layer.digest.to_string());
    Ok(LayerRead { empty, last })
}

/// Scans one layer on a blocking thread. Returns the state, and true if the layer has nothing for
/// the catalog.
fn scan_layer<S: FileSink>(
    scan: &LayerScan,
    mut raw: impl BufRead,
    above: oneshot::Receiver<OverlayState<S>>,
) -> Result<(OverlayState<S>, bool), UnpackError> {
    let mut above = Some(above);
    let mut take_state = || above.take()?.blocking_recv().ok();
    let scanned = scan.run(&mut raw, &mut take_state);
    if !matches!(scanned, Err(UnpackError::Abandoned)) {
        // To the end of the stream, because a wrong digest there explains the failure better.
        io::copy(&mut raw, &mut io::sink()).ok();
    }
    match scanned? {
        Some(state) => Ok((state, false)),
        None => Ok((take_state().ok_or(UnpackError::Abandoned)?, true)),
    }
}
