//! Objects that are too large to be kept, checked as they pass or before a part of them is sent.

use std::{
    mem,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use layout::{Form, Hasher, Key, Sha256, Stored};
use store::{Get, Version};

use crate::{
    app::App,
    coding::decode,
    error::{Corruption, Error},
    source::Object,
    stream::{self as chunks, Chunks},
};

/// How often an object may be replaced while somebody wants a part of it.
const PATIENCE: usize = 3;

/// What tells that an object is the one that was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The hash of its bytes as they are stored.
    Stored(Sha256),
    /// The hash of its lines, without the zstd that it is stored in.
    Lines(Sha256),
}

impl Proof {
    fn of(key: &Key, stored: Option<Stored>) -> Result<Self, Error> {
        match (key, stored) {
            (_, Some(stored)) => Ok(Self::Stored(stored.sha256)),
            (Key::Blob(hash) | Key::All(_, hash, Form::Identity), None) => Ok(Self::Stored(*hash)),
            (Key::Shard(hash) | Key::All(_, hash, Form::Zstd), None) => Ok(Self::Lines(*hash)),
            // The names of all others tell nothing of their bytes.
            (_, None) => Err(Error::corrupt(key, Corruption::Unproven)),
        }
    }
}

impl App {
    /// All bytes of an object. The last of them come only if all of them were right, every time anew.
    pub(crate) async fn whole_object(&self, object: &Object) -> Result<Chunks, Error> {
        match Proof::of(&object.key, object.stored)? {
            Proof::Stored(hash) => {
                let (_, body) = self.fetch(object, None).await?;
                let checked = hashed(body, hash, object.key.clone());
                Ok(chunks::exact(checked, object.size, object.key.clone()))
            }
            Proof::Lines(_) => self.part_of_object(object, None).await,
        }
    }

    /// Some bytes of an object, or all of them, for readers who will not see the end of it. All of it has been read and found right
    /// before, once for as long as the store says that nobody has written it since.
    pub(crate) async fn part_of_object(&self, object: &Object, range: Option<Range<u64>>) -> Result<Chunks, Error> {
        let length = range.as_ref().map_or(object.size, |range| range.end - range.start);
        for _ in 0..PATIENCE {
            let (version, body) = self.fetch(object, range.clone()).await?;
            let entry = (object.key.clone(), version);
            if let Some(stored) = self.caches.proven.get(&entry) {
                // A disk tells nobody what it damaged meanwhile. Of a part nothing can be told.
                let checked = match range {
                    None => hashed(body, stored, object.key.clone()),
                    Some(_) => body,
                };
                return Ok(chunks::exact(checked, length, object.key.clone()));
            }
            drop(body);
            let prove = self.prove(object, &entry.1);
            Box::pin(self.caches.proven.get_or_insert_async(&entry, prove)).await?;
        }
        Err(Error::corrupt(&object.key, Corruption::Mismatch))
    }

    async fn prove(&self, object: &Object, version: &Version) -> Result<Sha256, Error> {
        let (found, body) = self.fetch(object, None).await?;
        if found != *version {
            return Err(Error::corrupt(&object.key, Corruption::Mismatch));
        }
        let exact = chunks::exact(body, object.size, object.key.clone());
        let key = object.key.clone();
        match Proof::of(&key, object.stored)? {
            Proof::Stored(hash) => {
                read_out(hashed(exact, hash, key)).await?;
                Ok(hash)
            }
            Proof::Lines(hash) => {
                let hasher = Arc::new(Mutex::new(Hasher::new()));
                let lines = decode(told(exact, hasher.clone()), key.clone())?;
                read_out(hashed(lines, hash, key)).await?;
                let stored = mem::take(&mut *hasher.lock().unwrap_or_else(PoisonError::into_inner));
                Ok(stored.finish())
            }
        }
    }

    async fn fetch(&self, object: &Object, range: Option<Range<u64>>) -> Result<(Version, Chunks), Error> {
        let found = self.get(&object.key, Get { range, unless: None }).await;
        let found = found.map_err(|error| Error::named(&object.key, error))?;
        if found.info.size == object.size {
            return Ok((found.info.version, chunks::stored(found.body)));
        }
        let (expected, found) = (object.size, found.info.size);
        Err(Error::corrupt(&object.key, Corruption::Size { expected, found }))
    }
}

async fn read_out(mut body: Chunks) -> Result<(), Error> {
    while body.try_next().await?.is_some() {}
    Ok(())
}

/// The same bytes, of which the hasher is told.
fn told(body: Chunks, hasher: Arc<Mutex<Hasher>>) -> Chunks {
    let tell = move |chunk: &Bytes| hasher.lock().unwrap_or_else(PoisonError::into_inner).update(chunk);
    Box::pin(body.inspect_ok(tell))
}

/// The same bytes, and an error at their end if their hash is another one.
fn hashed(body: Chunks, expected: Sha256, key: Key) -> Chunks {
    let state = (body, Hasher::new(), key);
    Box::pin(stream::try_unfold(
        state,
        move |(mut body, mut hasher, key)| async move {
            match body.try_next().await? {
                Some(chunk) => {
                    hasher.update(&chunk);
                    Ok::<Option<(Bytes, _)>, Error>(Some((chunk, (body, hasher, key))))
                }
                None if hasher.finish() == expected => Ok(None),
                None => Err(Error::corrupt(&key, Corruption::Hash)),
            }
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_chunk_comes_only_if_all_were_right() {
        for (text, complete) in [("abcd", true), ("abce", false), ("xbcd", false)] {
            let parts: Vec<_> = text.as_bytes().chunks(2).map(Bytes::copy_from_slice).map(Ok).collect();
            let body = hashed(Box::pin(stream::iter(parts)), Sha256::of(b"abcd"), Key::Catalogs);
            let mut body = chunks::exact(body, 4, Key::Catalogs);
            let mut seen = Vec::new();
            let end = loop {
                match body.try_next().await {
                    Ok(Some(chunk)) => seen.extend_from_slice(&chunk),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            assert_eq!((end, seen.len()), (complete, if complete { 4 } else { 2 }), "{text}");
        }
    }

    #[test]
    fn what_nothing_tells_the_hash_of_is_not_sent() {
        let name: layout::CatalogName = "demo".parse().unwrap();
        let hash = Sha256::of(b"");
        let key = |form| Key::All(name.clone(), hash, form);
        assert_eq!(Proof::of(&Key::Shard(hash), None).unwrap(), Proof::Lines(hash));
        assert_eq!(Proof::of(&Key::Blob(hash), None).unwrap(), Proof::Stored(hash));
        assert_eq!(Proof::of(&key(Form::Identity), None).unwrap(), Proof::Stored(hash));
        assert!(Proof::of(&key(Form::Gzip), None).is_err());
        assert!(Proof::of(&Key::Index(name.clone(), hash), None).is_err());
    }
}
