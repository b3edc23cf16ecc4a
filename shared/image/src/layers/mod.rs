//! The layers of one image, fetched side by side and read from the top down.
//!
//! Each layer has a scanner of its own that runs freely over what does not concern the catalog.
//! What does needs the *baton*: the overlay and the sink, handed from each verified layer to the next
//! one below. So base layers are fetched and scanned while upper ones are still being read, and yet
//! the order is strict.

mod baton;
mod budget;
mod decompress;
mod reader;
mod scan;
mod tar;

use std::collections::BTreeSet;
use std::mem::replace;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::digest::Digest;
use crate::error::{Error, ImageError};
use crate::images::Pull;
use crate::manifest::{Blob, Image};
use crate::overlay::{Depth, Root, RootState};
use crate::path::shown;
use crate::place::{Fetched, Place};
use crate::settings::Settings;
use crate::sink::FileSink;

use baton::Baton;
use reader::ChannelReader;
use scan::{Scan, Scanned, scan};

pub(crate) use budget::Budget;
pub(crate) use reader::Tap;

/// Chunks between a fetch and its scanner. A few keep both busy; each may have some hundred KiB.
const CHUNKS_AHEAD: usize = 4;

/// Reads all layers of `image` that may matter. Returns only after every fetched one was verified.
pub(crate) async fn read<S: FileSink + 'static>(
    place: &Place,
    (image, root): (&Image, Root),
    empty: &BTreeSet<Digest>,
    sink: S,
    settings: &Settings,
) -> Result<(S, Pull), Error> {
    let budget = Arc::new(Budget::new(&settings.limits));
    let (first, mut ahead) = oneshot::channel();
    let mut pull = Pull::default();
    let mut turns = Vec::new();
    for (depth, layer) in from_the_top(image).into_iter().enumerate() {
        if empty.contains(&layer.digest) {
            pull.skip(&layer.digest);
            continue;
        }
        let (next, behind) = oneshot::channel();
        let scan = Scan {
            depth,
            layer: layer.clone(),
            root: root.clone(),
            budget: Arc::clone(&budget),
        };
        turns.push(Turn {
            layer,
            scan,
            baton: replace(&mut ahead, behind),
            next,
        });
    }
    let count = turns.len();
    first.send(Baton::new(sink)).ok();
    // Collected first: a closure inside the stream would keep the whole future from being `Send`.
    let turns: Vec<_> = turns.into_iter().map(|turn| turn.run(place)).collect();
    let mut done = stream::iter(turns).buffered(settings.side_by_side.max(1));
    let mut last = None;
    while let Some(read) = done.try_next().await? {
        pull.note(&read.layer, read.is_empty);
        if read.last.is_some() {
            last = read.last;
            break;
        }
    }
    // Fetches of layers that cannot matter any more end here.
    drop(done);
    pull.layers_skipped += count - pull.layers_fetched;
    let baton = match last {
        Some(baton) => baton,
        None => ahead
            .await
            .map_err(|_| ImageError::NoRoot(shown(root.path().as_bytes())))?,
    };
    let sink = finish(baton, root, budget).await?;
    Ok((sink, pull))
}

/// A layer that occurs twice is read once, at its upper place: all the lower one holds is hidden by it.
fn from_the_top(image: &Image) -> Vec<&Blob> {
    let mut seen = BTreeSet::new();
    image
        .layers
        .iter()
        .rev()
        .filter(|layer| seen.insert(&layer.digest))
        .collect()
}

/// Links come last: only now is it known where they lead.
async fn finish<S: FileSink + 'static>(baton: Baton<S>, root: Root, budget: Arc<Budget>) -> Result<S, Error> {
    match baton.root() {
        RootState::Directory => {}
        RootState::Missing if root.parts().is_empty() => {}
        RootState::Missing => return Err(ImageError::NoRoot(shown(root.path().as_bytes())).into()),
        RootState::NotDirectory => return Err(ImageError::RootNotDirectory(shown(root.path().as_bytes())).into()),
    }
    let finished = spawn_blocking(move || baton.finish(&root, &budget.limits));
    finished.await.map_err(Error::Task)?
}

/// One layer's turn.
struct Turn<'a, S> {
    layer: &'a Blob,
    scan: Scan,
    baton: oneshot::Receiver<Baton<S>>,
    next: oneshot::Sender<Baton<S>>,
}

/// A layer that was read and verified.
struct Read<S> {
    layer: Digest,
    is_empty: bool,
    /// The baton, if nothing below can matter.
    last: Option<Baton<S>>,
}

impl<S: FileSink + 'static> Turn<'_, S> {
    async fn run(self, place: &Place) -> Result<Read<S>, Error> {
        let (to, from) = mpsc::channel(CHUNKS_AHEAD);
        let (baton, depth) = (self.baton, self.scan.depth);
        let scanner = spawn_blocking(move || scan(&self.scan, ChannelReader::new(from), baton));
        let (fetched, scanned) = tokio::join!(place.stream(self.layer, to), scanner);
        let scanned = settle(fetched, scanned.map_err(Error::Task)?)?;
        tracing::debug!(layer = %self.layer.digest, bytes = self.layer.size, empty = scanned.is_empty(), "layer read");
        let is_empty = scanned.is_empty();
        let baton = match scanned {
            Scanned::Touched(baton) => *baton,
            Scanned::Untouched(baton) => baton.await.map_err(|_| Error::Abandoned)?,
        };
        let last = hand_on(baton, depth, self.next);
        Ok(Read {
            layer: self.layer.digest.clone(),
            is_empty,
            last,
        })
    }
}

fn hand_on<S>(baton: Baton<S>, depth: Depth, next: oneshot::Sender<Baton<S>>) -> Option<Baton<S>> {
    if baton.is_closed_below(depth) {
        return Some(baton);
    }
    // The receiver is the next turn or `read`, which outlive this one unless all is given up.
    next.send(baton).ok();
    None
}

/// A failed fetch explains a failed scan, not the other way round.
fn settle<T>(fetched: Result<Fetched, Error>, scanned: Result<T, Error>) -> Result<T, Error> {
    match (fetched, scanned) {
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
        (Ok(Fetched::Verified), Ok(scanned)) => Ok(scanned),
        (Ok(Fetched::Unwanted), Ok(_)) => Err(Error::Abandoned),
    }
}
