//! One layer's tar stream, entry by entry, on a blocking thread.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot::Receiver;

use crate::error::{Error, LayerError, Limit};
use crate::layers::baton::{Baton, Entry, EntryKind};
use crate::layers::budget::Budget;
use crate::layers::decompress::{Metered, decompress};
use crate::layers::reader::ChannelReader;
use crate::layers::tar::{Archive, Flaw, Member, kind};
use crate::manifest::Blob;
use crate::overlay::{Depth, Kind, Root, Touch};
use crate::path::shown;
use crate::sink::FileSink;

/// What a scanner knows before it starts.
pub(crate) struct Scan {
    pub(crate) depth: Depth,
    pub(crate) layer: Blob,
    pub(crate) root: Root,
    pub(crate) budget: Arc<Budget>,
}

impl Scan {
    pub(crate) fn error(&self, source: LayerError) -> Error {
        Error::Layer {
            layer: self.layer.digest.clone(),
            source,
        }
    }

    /// A stream that failed, unless a limit ended it.
    pub(crate) fn broken(&self, error: io::Error, source: impl FnOnce(io::Error) -> LayerError) -> Error {
        match error.downcast::<Limit>() {
            Ok(limit) => Error::Limit(limit),
            Err(error) => self.error(source(error)),
        }
    }

    fn flaw(&self, flaw: Flaw, entries: u64) -> Error {
        let entry = entries + 1;
        match flaw {
            Flaw::Read(error) => self.broken(error, LayerError::Format),
            Flaw::Tar(what) => self.error(LayerError::Tar { entry, what }),
            Flaw::HeaderBytes => Error::Limit(Limit {
                name: "headerBytes",
                limit: self.budget.limits.header_bytes,
                place: format!("entry {entry} of {}", self.place()),
            }),
        }
    }

    fn place(&self) -> String {
        format!("layer {}", self.layer.digest)
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
    let plain = decompress(raw).map_err(|error| scan.error(error))?;
    let metered = Metered::new(plain, scan.budget.meter(&scan.layer));
    let mut archive = Archive::new(metered, scan.budget.limits.header_bytes);
    let mut scanned = Scanned::Untouched(turn);
    loop {
        let next = archive.next();
        let Some(member) = next.map_err(|flaw| scan.flaw(flaw, archive.count()))? else {
            return Ok(scanned);
        };
        scan.budget.entry(|| scan.place())?;
        if let Some(touch) = touch(scan, &member)? {
            let mut baton = scanned.baton()?;
            let entry = Entry {
                kind: kind(scan, &member)?,
                size: member.size,
                content: &mut archive.content(),
            };
            baton.apply(scan, touch, entry)?;
            scanned = Scanned::Touched(baton);
        }
    }
}

/// What the entry means to the catalog, if it does.
fn touch(scan: &Scan, member: &Member) -> Result<Option<Touch>, Error> {
    scan.budget.path(&member.path, || scan.place())?;
    let touch = touched(scan, &member.path, member.kind == kind::DIR)?;
    let Some(sparse) = &member.sparse else {
        return Ok(touch);
    };
    // Its other name may be the one that leads into the catalog.
    let other = sparse.path.as_ref().map(|path| touched(scan, path, false));
    match (touch, other.transpose()?.flatten()) {
        (None, None) => Ok(None),
        _ => Err(scan.error(LayerError::Sparse(shown(&member.path)))),
    }
}

fn touched(scan: &Scan, path: &[u8], is_dir: bool) -> Result<Option<Touch>, Error> {
    let Ok(name) = std::str::from_utf8(path) else {
        return match scan.root.may_hold(path) {
            true => Err(scan.error(LayerError::NotUtf8(shown(path)))),
            false => Ok(None),
        };
    };
    match scan.root.touch(name, is_dir) {
        Touch::Nothing => Ok(None),
        _ if name.contains(text::is_unprintable) => Err(scan.error(LayerError::Unprintable(shown(path)))),
        touch => Ok(Some(touch)),
    }
}

fn kind(scan: &Scan, member: &Member) -> Result<EntryKind, Error> {
    let link = || -> Result<String, Error> {
        scan.budget.path(&member.target, || scan.place())?;
        let target = String::from_utf8(member.target.clone());
        target.map_err(|_| scan.error(LayerError::NotUtf8(shown(&member.target))))
    };
    Ok(match member.kind {
        kind::DIR => EntryKind::Dir,
        kind::OLD_FILE | kind::FILE | kind::CONTIGUOUS => EntryKind::Content(Kind::File),
        kind::SYMLINK => EntryKind::Content(Kind::Symlink(link()?)),
        kind::HARD_LINK => EntryKind::Content(Kind::Hardlink(link()?)),
        other => EntryKind::Odd(odd(other)),
    })
}

fn odd(kind: u8) -> String {
    match kind {
        kind::CHARACTER_DEVICE => "a character device".to_owned(),
        kind::BLOCK_DEVICE => "a block device".to_owned(),
        kind::FIFO => "a fifo".to_owned(),
        other => format!("of tar type {:?}", char::from(other)),
    }
}
