//! One function for each row of the contract: from a target to its representation.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use layout::{CachePolicy, CatalogName, Key, Sha256, Snapshot};
use store::Get;

use crate::{
    app::App,
    cache::BodyKey,
    error::Error,
    fields::{Coding, Modified, Query, Tag, negotiate},
    published::{Published, parse_snapshot},
    respond::Representation,
    route::Target,
    source::{Object, Source},
};

/// Bodies below this go out as they are: with its header, a compressed one saves no packet.
const WORTH_CODING: u64 = 1 << 10;

impl App {
    /// What a plain GET of the target is answered with. Here and elsewhere a future that is rarely needed is boxed, to
    /// keep the one of every request small: it is moved more than once.
    pub(crate) async fn represent(
        self: &Arc<Self>,
        target: Target<'_>,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Representation, Error> {
        match target {
            Target::Health => Ok(text("ok\n")),
            Target::Ready => self.ready().await,
            Target::OpenApi => Ok(document(crate::openapi::document(), CachePolicy::Pointer)),
            Target::Catalogs => Box::pin(self.listing()).await,
            Target::Document(key) => Box::pin(self.document(&key)).await,
            Target::Current(name) => Ok(current(&*self.published(&name).await?)),
            Target::Immutable(key) => self.immutable(key).await,
            Target::All(name) => all(&*self.published(&name).await?, headers),
            Target::Metas(name) => Box::pin(self.metas(&name, query, headers)).await,
            Target::Packages(name) => Ok(self.packages(&*self.published(&name).await?)),
            Target::Package(name, package) => package_of(&*self.published(&name).await?, &package, headers),
            Target::ContentHash(name) => Ok(content_hash(&*self.published(&name).await?)),
            Target::Changes(name) => Box::pin(self.changes(&name, query)).await,
            Target::Registry(target) => Box::pin(self.registry(target, query)).await,
        }
    }

    /// Any answer of the store will do: an empty one has no `catalogs.json` yet.
    async fn ready(&self) -> Result<Representation, Error> {
        match self.store.head(&Key::Catalogs).await {
            Ok(_) => Ok(text("ok\n")),
            Err(error) if error.is_not_found() => Ok(text("ok\n")),
            Err(error) => Err(Error::Store(error)),
        }
    }

    /// A document that changes, as it is stored.
    async fn document(&self, key: &Key) -> Result<Representation, Error> {
        match self.get(key, Get::default()).await {
            Ok(object) => Ok(document(self.collect(key, object).await?, key.cache_policy())),
            Err(error) if error.is_not_found() => Err(Error::UnknownObject),
            Err(error) => Err(Error::Store(error)),
        }
    }

    /// An object that never changes, as it is stored.
    async fn immutable(&self, key: Key) -> Result<Representation, Error> {
        let tag = immutable_tag(&key);
        let cached = self.caches.bodies.get(&BodyKey::Object(key.clone()));
        let source = match cached {
            // Whether it is the one that was published is told by what is published now.
            Some(bytes) if !matches!(key, Key::Snapshot(..)) => Source::Memory(bytes),
            _ => Source::Object(Box::pin(self.find_object(&key)).await?),
        };
        Ok(Representation {
            tag,
            modified: None,
            cache: key.cache_policy(),
            content_type: key.content_type(),
            encoding: key.content_encoding().map(http::HeaderValue::from_static),
            negotiated: false,
            extra: None,
            source,
        })
    }

    /// The whole catalog is checked against its snapshot where it is too large to be read before it is sent; an index
    /// always, because its key is not made of its own hash.
    async fn find_object(&self, key: &Key) -> Result<Object, Error> {
        let size = match self.store.head(key).await {
            Ok(info) => info.size,
            Err(error) if error.is_not_found() => return Err(Error::UnknownObject),
            Err(error) => return Err(Error::Store(error)),
        };
        let stored = match key {
            Key::All(name, hash, form) if size > self.caches.body_max => {
                self.snapshot_of(name, *hash).await?.all.form(*form)
            }
            Key::Index(name, hash) => Some(self.snapshot_of(name, *hash).await?.index),
            _ => None,
        };
        Ok(Object {
            key: key.clone(),
            size: stored.map_or(size, |stored| stored.size),
            stored,
        })
    }

    async fn snapshot_of(&self, name: &CatalogName, hash: Sha256) -> Result<Snapshot, Error> {
        let key = Key::Snapshot(name.clone(), hash);
        parse_snapshot(&key, &self.read(&key).await?)
    }

    /// catalogd's `metas`.
    async fn metas(self: &Arc<Self>, name: &str, query: &str, headers: &HeaderMap) -> Result<Representation, Error> {
        let query = Query::parse(query).map_err(Error::Parameter)?;
        let published = self.published(name).await?;
        if query.is_empty() {
            return all(&published, headers);
        }
        let lines = self.find(Arc::clone(&published), &query).await?;
        let coding = coding_for(lines.length, headers)?;
        let tag = Tag::new(lines.identity, coding.suffix());
        Ok(catalog_lines(tag, &published, coding, Source::Lines { lines, coding }))
    }
}

fn all(published: &Published, headers: &HeaderMap) -> Result<Representation, Error> {
    let coding = negotiate(headers, &Coding::ALL).ok_or(Error::NotAcceptable)?;
    let tag = published.all_tag(coding).clone();
    Ok(catalog_lines(tag, published, coding, Source::whole(published, coding)))
}

fn package_of(published: &Published, package: &str, headers: &HeaderMap) -> Result<Representation, Error> {
    let shard = published.snapshot.package(package);
    let shard = shard.ok_or_else(|| Error::UnknownPackage(package.to_owned()))?;
    let coding = negotiate(headers, &Coding::ALL).ok_or(Error::NotAcceptable)?;
    let tag = Tag::new(shard.sha256, coding.suffix());
    Ok(catalog_lines(tag, published, coding, Source::shard(shard, coding)))
}

fn coding_for(length: u64, headers: &HeaderMap) -> Result<Coding, Error> {
    let plain = negotiate(headers, &[Coding::Identity]).filter(|_| length < WORTH_CODING);
    plain
        .or_else(|| negotiate(headers, &Coding::ALL))
        .ok_or(Error::NotAcceptable)
}

fn catalog_lines(tag: Tag, published: &Published, coding: Coding, source: Source) -> Representation {
    Representation {
        tag,
        modified: Some(published.modified.clone()),
        cache: CachePolicy::Pointer,
        content_type: "application/jsonl",
        encoding: coding.header(),
        negotiated: true,
        extra: None,
        source,
    }
}

fn current(published: &Published) -> Representation {
    Representation {
        tag: published.document_tag.clone(),
        source: Source::Memory(published.document.clone()),
        ..document(Bytes::new(), CachePolicy::Pointer)
    }
}

fn content_hash(published: &Published) -> Representation {
    let line = format!("{}\n", published.current.content_hash);
    Representation {
        modified: Some(published.modified.clone()),
        cache: CachePolicy::Pointer,
        ..plain(line.into(), "text/plain; charset=utf-8")
    }
}

/// The tag of an object follows from its key: the same key always has the same bytes. It is that of the answer with
/// the same content in the same coding, so a client that was redirected can go on asking where it began.
fn immutable_tag(key: &Key) -> Tag {
    use layout::Form;
    match key {
        Key::All(_, hash, Form::Zstd) | Key::Shard(hash) => Tag::new(*hash, Coding::Zstd.suffix()),
        Key::All(_, hash, Form::Gzip) => Tag::new(*hash, Coding::Gzip.suffix()),
        Key::All(_, hash, Form::Identity) => Tag::new(*hash, Coding::Identity.suffix()),
        Key::Snapshot(_, hash) => Tag::new(*hash, "-snapshot"),
        Key::Index(_, hash) => Tag::new(*hash, "-index"),
        Key::Blob(hash) => Tag::new(*hash, ""),
        Key::Catalogs
        | Key::Current(_)
        | Key::Status(_)
        | Key::Layers(_)
        | Key::Notified(_)
        | Key::Intent(..)
        | Key::Sweep => Tag::new(Sha256::of(b""), ""),
    }
}

fn text(text: &'static str) -> Representation {
    plain(Bytes::from_static(text.as_bytes()), "text/plain; charset=utf-8")
}

/// JSON at hand.
pub(crate) fn document(bytes: Bytes, cache: CachePolicy) -> Representation {
    Representation {
        cache,
        ..plain(bytes, "application/json")
    }
}

fn plain(bytes: Bytes, content_type: &'static str) -> Representation {
    Representation {
        tag: Tag::new(Sha256::of(&bytes), ""),
        modified: None::<Modified>,
        cache: CachePolicy::NoStore,
        content_type,
        encoding: None,
        negotiated: false,
        extra: None,
        source: Source::Memory(bytes),
    }
}
