use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use layout::{Form, Key, Sha256, ShardRef, Stored};

use crate::{
    app::{App, blocking},
    cache::BodyKey,
    changes::States,
    coding::{decode, decode_all, encode, encode_all},
    error::Error,
    fields::Coding,
    lines::Lines,
    published::Published,
    stream::{self, Chunks},
};

/// What a body is made of, before anything of it has been read: conditions are evaluated first.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Bytes at hand.
    Memory(Bytes),
    /// An immutable object as it is stored.
    Object(Object),
    /// The lines of an object in another coding than it is stored in.
    Recoded(Recoded),
    /// Some lines of a catalog.
    Lines { lines: Lines, coding: Coding },
    /// What changed between two states.
    Changes(States),
}

/// An immutable object of a known size.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) size: u64,
    /// What its snapshot says of it, where one is at hand.
    pub(crate) stored: Option<Stored>,
}

/// A body that can be sent.
#[derive(Debug)]
pub(crate) struct Content {
    plain: Plain,
    /// Compressed as it goes, to nobody knows how many bytes.
    encoded: Option<Coding>,
}

/// Bytes before they are compressed as they go.
#[derive(Debug, Clone)]
enum Plain {
    /// All of them at hand.
    Memory(Bytes),
    /// An object that is too large to be kept.
    Stored(Object),
    /// The same, decompressed to so many bytes.
    Decoded(Object, u64),
    /// Many lines.
    Lines(Lines),
}

impl Source {
    /// The whole catalog.
    pub(crate) fn whole(published: &Published, coding: Coding) -> Self {
        let all = &published.snapshot.all;
        let form = match coding {
            Coding::Zstd => Form::Zstd,
            Coding::Gzip => Form::Gzip,
            Coding::Identity => Form::Identity,
        };
        let key = |form| Key::All(published.name.clone(), published.current.content_hash, form);
        match all.form(form) {
            Some(stored) => Self::Object(Object::new(key(form), stored)),
            None => Self::Recoded(Recoded {
                object: Object::new(key(Form::Zstd), all.zstd),
                size: published.snapshot.size,
                content: published.current.content_hash,
                coding,
            }),
        }
    }

    /// The lines of one package.
    pub(crate) fn shard(shard: &ShardRef, coding: Coding) -> Self {
        match coding {
            Coding::Zstd => Self::Object(Object::new(Key::Shard(shard.sha256), shard.stored)),
            Coding::Gzip | Coding::Identity => Self::Recoded(Recoded::shard(shard, coding)),
        }
    }

    /// The key under which anyone can fetch exactly this body.
    pub(crate) const fn key(&self) -> Option<&Key> {
        match self {
            Self::Object(object) => Some(&object.key),
            Self::Memory(_) | Self::Recoded(_) | Self::Lines { .. } | Self::Changes(_) => None,
        }
    }

    /// The length, where it is known without reading.
    pub(crate) const fn length(&self) -> Option<u64> {
        match self {
            Self::Memory(bytes) => Some(bytes.len() as u64),
            Self::Object(object) => Some(object.size),
            Self::Recoded(Recoded {
                size,
                coding: Coding::Identity,
                ..
            }) => Some(*size),
            Self::Lines {
                lines,
                coding: Coding::Identity,
            } => Some(lines.length),
            Self::Recoded(_) | Self::Lines { .. } | Self::Changes(_) => None,
        }
    }
}

/// An object that is stored as zstd and wanted otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Recoded {
    object: Object,
    /// The bytes of its lines.
    size: u64,
    /// The hash of its lines.
    content: Sha256,
    coding: Coding,
}

impl Recoded {
    fn shard(shard: &ShardRef, coding: Coding) -> Self {
        Self {
            object: Object::new(Key::Shard(shard.sha256), shard.stored),
            size: shard.size,
            content: shard.sha256,
            coding,
        }
    }

    const fn fits(&self, body_max: u64) -> bool {
        self.size <= body_max && self.object.size <= body_max
    }
}

impl Object {
    /// Documents are judged as a whole, however large they are.
    const fn is_document(&self) -> bool {
        matches!(self.key, Key::Snapshot(..) | Key::Index(..))
    }

    pub(crate) const fn new(key: Key, stored: Stored) -> Self {
        Self {
            key,
            size: stored.size,
            stored: Some(stored),
        }
    }
}

impl Content {
    /// The length, unless it is compressed as it goes.
    pub(crate) const fn length(&self) -> Option<u64> {
        if self.encoded.is_some() {
            return None;
        }
        Some(match &self.plain {
            Plain::Memory(bytes) => bytes.len() as u64,
            Plain::Stored(object) => object.size,
            Plain::Decoded(_, size) => *size,
            Plain::Lines(lines) => lines.length,
        })
    }

    /// All of it, if it is at hand.
    pub(crate) const fn memory(&self) -> Option<&Bytes> {
        match &self.plain {
            Plain::Memory(bytes) => Some(bytes),
            Plain::Stored(_) | Plain::Decoded(..) | Plain::Lines(_) => None,
        }
    }

    /// Whether several ranges cost no more than about two answers with all of it: what is decompressed as it goes has
    /// to be decompressed from its beginning for each of them (RFC 9110, section 17.15).
    pub(crate) fn is_cheap(&self, parts: &[Range<u64>]) -> bool {
        match &self.plain {
            Plain::Memory(_) | Plain::Stored(_) => true,
            Plain::Decoded(_, length) | Plain::Lines(Lines { length, .. }) => {
                parts.len() == 1 || parts.iter().map(|part| part.end).sum::<u64>() <= 2 * length
            }
        }
    }

    const fn plain(plain: Plain) -> Self {
        Self { plain, encoded: None }
    }

    /// Large bytes in a coding.
    fn encoded(plain: Plain, coding: Coding) -> Self {
        let encoded = (coding != Coding::Identity).then_some(coding);
        Self { plain, encoded }
    }
}

impl App {
    /// Makes a body ready: small ones are read, verified and kept, large ones are left to be streamed.
    pub(crate) async fn open(self: &Arc<Self>, source: Source) -> Result<Content, Error> {
        match source {
            Source::Memory(bytes) => Ok(Content::plain(Plain::Memory(bytes))),
            Source::Object(object) if object.size <= self.caches.body_max || object.is_document() => {
                let bytes = Box::pin(self.judged(object)).await?;
                Ok(Content::plain(Plain::Memory(bytes)))
            }
            Source::Object(object) => Ok(Content::plain(Plain::Stored(object))),
            Source::Recoded(recoded) if recoded.fits(self.caches.body_max) => {
                let bytes = self.recoded(recoded).await?;
                Ok(Content::plain(Plain::Memory(bytes)))
            }
            Source::Recoded(Recoded {
                object, size, coding, ..
            }) => Ok(Content::encoded(Plain::Decoded(object, size), coding)),
            Source::Lines { lines, coding } if lines.length <= self.caches.body_max => {
                let bytes = self.gathered(lines, coding).await?;
                Ok(Content::plain(Plain::Memory(bytes)))
            }
            Source::Lines { lines, coding } => Ok(Content::encoded(Plain::Lines(lines), coding)),
            Source::Changes(states) => {
                let bytes = Box::pin(self.compared(states)).await?;
                Ok(Content::plain(Plain::Memory(bytes)))
            }
        }
    }

    /// A small object or a document, read, verified and kept.
    async fn judged(&self, object: Object) -> Result<Bytes, Error> {
        let bytes = self.cached(&object.key, object.stored).await?;
        self.vouch(&object.key, &bytes).await?;
        Ok(bytes)
    }

    /// A small object in another coding, kept.
    async fn recoded(&self, recoded: Recoded) -> Result<Bytes, Error> {
        let Recoded {
            object,
            size,
            content,
            coding,
        } = recoded;
        let entry = BodyKey::Made(content, coding);
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let make = async {
            let stored = self.cached(&object.key, object.stored).await?;
            let recode = move || decode_all(&stored, size).and_then(|lines| recode(lines, coding));
            blocking(recode).await.map_err(stream::coding(&object.key))
        };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// Few lines in a coding, kept.
    async fn gathered(self: &Arc<Self>, lines: Lines, coding: Coding) -> Result<Bytes, Error> {
        let entry = BodyKey::Made(lines.identity, coding);
        if let Some(bytes) = self.caches.bodies.get(&entry) {
            return Ok(bytes);
        }
        let make = async {
            let (key, length) = (lines.key(), lines.length);
            let plain = stream::collect(self.lines(lines).await?, length).await?;
            let coded = blocking(move || recode(plain.into(), coding)).await;
            coded.map_err(stream::coding(&key))
        };
        Box::pin(self.caches.bodies.get_or_insert_async(&entry, make)).await
    }

    /// The bytes of a body. The first read has happened when this returns, so that a failure still gets its status.
    pub(crate) async fn chunks(self: &Arc<Self>, content: Content) -> Result<Chunks, Error> {
        let (chunks, key) = match content.plain {
            Plain::Memory(bytes) => (stream::once(bytes), Key::Catalogs),
            Plain::Stored(object) => (self.whole_object(&object).await?, object.key),
            Plain::Decoded(object, size) => {
                let stored = if object.size <= self.caches.body_max {
                    stream::once(self.cached(&object.key, object.stored).await?)
                } else {
                    self.whole_object(&object).await?
                };
                (undone(stored, size, &object.key)?, object.key)
            }
            Plain::Lines(lines) => {
                let key = lines.key();
                (self.lines(lines).await?, key)
            }
        };
        match content.encoded {
            Some(coding) => encode(chunks, coding, key),
            None => Ok(chunks),
        }
    }

    /// Some bytes of a body whose length is known.
    pub(crate) async fn part(self: &Arc<Self>, content: &Content, range: Range<u64>) -> Result<Chunks, Error> {
        let (whole, key) = match &content.plain {
            Plain::Memory(bytes) => {
                return Ok(stream::once(
                    bytes.slice(stream::small(range.start)..stream::small(range.end)),
                ));
            }
            Plain::Stored(object) => return self.part_of_object(object, Some(range)).await,
            Plain::Decoded(object, size) => (self.decoded(object, *size).await?, object.key.clone()),
            Plain::Lines(lines) => (self.lines(lines.clone()).await?, lines.key()),
        };
        let length = range.end - range.start;
        Ok(stream::exact(stream::pick(whole, [range]), length, key))
    }

    /// The lines of an object that is stored as zstd, for readers who may not read them to their end.
    pub(crate) async fn decoded(&self, object: &Object, size: u64) -> Result<Chunks, Error> {
        let stored = if object.size <= self.caches.body_max {
            stream::once(self.cached(&object.key, object.stored).await?)
        } else {
            self.part_of_object(object, None).await?
        };
        undone(stored, size, &object.key)
    }

    /// The lines of one shard.
    pub(crate) async fn shard(&self, shard: &ShardRef) -> Result<Chunks, Error> {
        let recoded = Recoded::shard(shard, Coding::Identity);
        if recoded.fits(self.caches.body_max) {
            Ok(stream::once(self.recoded(recoded).await?))
        } else {
            self.decoded(&recoded.object, recoded.size).await
        }
    }
}

/// Exactly so many bytes, without the zstd that they are stored in.
fn undone(stored: Chunks, size: u64, key: &Key) -> Result<Chunks, Error> {
    Ok(stream::exact(decode(stored, key.clone())?, size, key.clone()))
}

fn recode(lines: Bytes, coding: Coding) -> std::io::Result<Bytes> {
    match coding {
        Coding::Identity => Ok(lines),
        Coding::Gzip | Coding::Zstd => encode_all(&lines, coding),
    }
}
