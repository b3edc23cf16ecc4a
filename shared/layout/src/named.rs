use crate::{CatalogName, Form, Image, Key, Sha256, Snapshot, Stored};

/// An object that a [`Snapshot`] names, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Where it lies.
    pub key: Key,
    /// Its bytes as they are stored.
    pub stored: Stored,
    /// What it holds once decompressed, where something says so.
    pub content: Option<Content>,
}

/// What an object decompresses to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The sha256 of it.
    pub sha256: Sha256,
    /// Its bytes.
    pub size: u64,
}

impl Snapshot {
    /// Every object that the Snapshot of `catalog` names, each key once: Shards in their order, the image's blobs, the
    /// index, the forms of `all.json`.
    pub fn objects(&self, catalog: &CatalogName) -> Vec<Named> {
        let mut seen = std::collections::BTreeSet::new();
        let mut objects: Vec<Named> = self
            .shards()
            .filter(|shard| seen.insert(shard.sha256))
            .map(|shard| Named {
                key: Key::Shard(shard.sha256),
                stored: shard.stored,
                content: Some(Content {
                    sha256: shard.sha256,
                    size: shard.size,
                }),
            })
            .collect();
        let blobs = self.image.iter().flat_map(Image::blobs);
        objects.extend(blobs.filter(|blob| seen.insert(blob.sha256)).map(|stored| Named {
            key: Key::Blob(stored.sha256),
            stored,
            content: Some(Content {
                sha256: stored.sha256,
                size: stored.size,
            }),
        }));
        objects.push(Named {
            key: Key::Index(catalog.clone(), self.content_hash),
            stored: self.index,
            content: None,
        });
        let all = Content {
            sha256: self.content_hash,
            size: self.size,
        };
        let forms = Form::ALL.into_iter().filter_map(|form| {
            Some(Named {
                key: Key::All(catalog.clone(), self.content_hash, form),
                stored: self.all.form(form)?,
                content: Some(all),
            })
        });
        objects.extend(forms);
        objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RENDER_VERSION, ShardRef, Whole};

    fn stored(text: &str) -> Stored {
        Stored {
            size: text.len() as u64,
            sha256: Sha256::of(text.as_bytes()),
        }
    }

    fn shard(name: &str, lines: &str) -> ShardRef {
        ShardRef {
            name: name.into(),
            sha256: Sha256::of(lines.as_bytes()),
            size: lines.len() as u64,
            metas: 1,
            stored: stored(lines),
        }
    }

    #[test]
    fn each_object_is_named_once() {
        let snapshot = Snapshot {
            render_version: RENDER_VERSION,
            content_hash: Sha256::of(b"all"),
            size: 3,
            metas: 3,
            all: Whole {
                zstd: stored("zstd"),
                gzip: stored("gzip"),
                identity: None,
            },
            index: stored("index"),
            image: None,
            global: Some(shard("", "global")),
            packages: vec![shard("a", "same"), shard("b", "same")],
        };
        let objects = snapshot.objects(&"demo".parse().unwrap());
        let recorded: Vec<Stored> = objects.iter().map(|object| object.stored).collect();
        assert_eq!(recorded, ["global", "same", "index", "zstd", "gzip"].map(stored));
        assert_eq!(objects[0].key, Key::Shard(Sha256::of(b"global")));
        assert_eq!(objects[2].content, None);
        assert_eq!(
            objects[3].content.map(|content| content.sha256),
            Some(snapshot.content_hash)
        );
        assert_eq!(
            objects[3].key.catalog().map(ToString::to_string).as_deref(),
            Some("demo")
        );
    }
}
