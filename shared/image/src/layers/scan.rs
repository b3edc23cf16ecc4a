//! One layer's tar stream, entry by entry, on a blocking thread.

use std::io::Read;
use std::sync::Arc;

use tar::{Archive, EntryType};
use tokio::sync::oneshot::Receiver;

use crate::digest::Digest;
use crate::error::{Error, LayerError};
use crate::layers::baton::{Baton, Entry, EntryKind};
use crate::layers::budget::Budget;
use crate::layers::decompress::{Gauge, Metered, decompress};
use crate::layers::reader::ChannelReader;
use crate::overlay::{Depth, Kind, Root, Touch};
use crate::sink::FileSink;

/// What a scanner knows before it starts.
pub(crate) struct Scan {
    pub(crate) depth: Depth,
    pub(crate) layer: Digest,
    pub(crate) root: Root,
    pub(crate) budget: Arc<Budget>,
}

impl Scan {
    pub(crate) fn error(&self, source: LayerError) -> Error {
        Error::Layer {
            layer: self.layer.clone(),
            source,
        }
    }
}

/// A layer that was scanned to its end.
pub(crate) enum Scanned<S> {
    /// It holds nothing that matters, so its turn never came.
    Untouched(Receiver<Baton<S>>),
    Touched(Box<Baton<S>>),
}

impl<S> Scanned<S> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Untouched(_))
    }

    /// Waits for all upper layers to be done, at the first entry that matters.
    fn baton(self) -> Result<Box<Baton<S>>, Error> {
        match self {
            Self::Touched(baton) => Ok(baton),
            Self::Untouched(turn) => turn.blocking_recv().map(Box::new).map_err(|_| Error::Abandoned),
        }
    }
}

/// Scans one layer. Whatever happens the stream is taken to its end, because a broken digest there
/// is the better explanation of whatever went wrong before.
pub(crate) fn scan<S: FileSink>(
    scan: &Scan,
    mut raw: ChannelReader,
    turn: Receiver<Baton<S>>,
) -> Result<Scanned<S>, Error> {
    let scanned = entries(scan, &mut raw, turn);
    if !matches!(scanned, Err(Error::Abandoned)) {
        raw.drain();
    }
    scanned
}

fn entries<S: FileSink>(scan: &Scan, raw: &mut ChannelReader, turn: Receiver<Baton<S>>) -> Result<Scanned<S>, Error> {
    let gauge = Gauge::default();
    let plain = decompress(raw).map_err(|error| scan.error(error))?;
    let mut archive = Archive::new(Metered::new(plain, &scan.budget, &scan.layer, gauge.clone()));
    let broken = |error| {
        gauge
            .exceeded()
            .unwrap_or_else(|| scan.error(LayerError::Format(error)))
    };
    let header_bytes = scan.budget.limits.header_bytes;
    let mut scanned = Scanned::Untouched(turn);
    let mut entries = archive.entries().map_err(broken)?;
    gauge.bound(Some(header_bytes));
    while let Some(entry) = entries.next().transpose().map_err(broken)? {
        gauge.bound(None);
        let end = entry.raw_file_position().saturating_add(stored_size(&entry));
        gauge.content_end(end);
        scan.budget.entry(&scan.layer)?;
        if let Some(touch) = touch(scan, &entry)? {
            let mut baton = scanned.baton()?;
            let applied = apply(scan, &mut baton, touch, entry);
            applied.map_err(|error| gauge.exceeded().unwrap_or(error))?;
            scanned = Scanned::Touched(baton);
        }
        gauge.bound(Some(end.saturating_add(header_bytes)));
    }
    Ok(scanned)
}

fn stored_size<R: Read>(entry: &tar::Entry<'_, R>) -> u64 {
    entry.header().entry_size().unwrap_or(0).max(entry.size())
}

fn touch<R: Read>(scan: &Scan, entry: &tar::Entry<'_, R>) -> Result<Option<Touch>, Error> {
    if entry.header().entry_type() == EntryType::XGlobalHeader {
        return Ok(None);
    }
    let name = entry.path_bytes();
    scan.budget.path(&name)?;
    let Ok(name) = std::str::from_utf8(&name) else {
        let shown = String::from_utf8_lossy(&name).into_owned();
        let matters = scan.root.may_hold(&name);
        return if matters {
            Err(scan.error(LayerError::NotUtf8(shown)))
        } else {
            Ok(None)
        };
    };
    let touch = scan.root.touch(name, entry.header().entry_type().is_dir());
    Ok(Some(touch).filter(|touch| *touch != Touch::Nothing))
}

fn apply<R: Read, S: FileSink>(
    scan: &Scan,
    baton: &mut Baton<S>,
    touch: Touch,
    mut entry: tar::Entry<'_, R>,
) -> Result<(), Error> {
    let kind = kind(scan, &entry)?;
    let size = entry.size();
    baton.apply(
        scan,
        touch,
        Entry {
            kind,
            size,
            content: &mut entry,
        },
    )
}

fn kind<R: Read>(scan: &Scan, entry: &tar::Entry<'_, R>) -> Result<EntryKind, Error> {
    let link = || -> Result<String, Error> {
        let target = entry.link_name_bytes().unwrap_or_default();
        scan.budget.path(&target)?;
        let shown = || String::from_utf8_lossy(&target).into_owned();
        String::from_utf8(target.to_vec()).map_err(|_| scan.error(LayerError::NotUtf8(shown())))
    };
    Ok(match entry.header().entry_type() {
        EntryType::Directory => EntryKind::Dir,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => EntryKind::Content(Kind::File),
        EntryType::Symlink => EntryKind::Content(Kind::Symlink(link()?)),
        EntryType::Link => EntryKind::Content(Kind::Hardlink(link()?)),
        other => EntryKind::Odd(odd(other)),
    })
}

fn odd(kind: EntryType) -> String {
    match kind {
        EntryType::Char => "a character device".to_owned(),
        EntryType::Block => "a block device".to_owned(),
        EntryType::Fifo => "a fifo".to_owned(),
        other => format!("of tar type {:?}", char::from(other.as_byte())),
    }
}
