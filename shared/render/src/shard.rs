use std::{
    borrow::Cow,
    io::{self, Read, Write},
    sync::Arc,
};

use layout::{Hasher, IndexedMeta, Sha256};

use crate::{
    Published, RenderError,
    fragment::{Fragment, FragmentBody},
    scratch::Held,
    worker::Shop,
};

/// One Package as one run of canonical lines.
#[derive(Debug)]
pub struct Shard {
    /// The Package's name; empty for the global group.
    pub name: String,
    /// The sha256 of the lines.
    pub sha256: Sha256,
    /// The bytes of the lines.
    pub size: u64,
    /// Where each Meta lies.
    pub metas: Vec<IndexedMeta>,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Published,
    New(Arc<Held>),
}

impl Shard {
    /// Whether a Shard with this hash was published before.
    pub const fn is_published(&self) -> bool {
        matches!(self.body, Body::Published)
    }

    /// The compressed bytes, checked by whoever decompresses them.
    pub(crate) fn compressed(&self, shop: &Shop) -> Result<Cow<'_, [u8]>, RenderError> {
        match &self.body {
            Body::New(held) => shop.scratch.read(held).map_err(RenderError::Scratch),
            Body::Published => load(&*shop.published, &self.sha256).map(Cow::Owned),
        }
    }

    /// Joins the fragments of one Package, which are in order.
    pub(crate) fn join(fragments: &[Fragment], shop: &Shop) -> Result<Self, RenderError> {
        let name = fragments
            .first()
            .map(|first| first.group.to_string())
            .unwrap_or_default();
        let size = fragments.iter().map(|fragment| fragment.size).sum();
        let metas = metas(fragments);
        let (sha256, body) = match fragments {
            [
                Fragment {
                    body: FragmentBody::Published(sha256),
                    ..
                },
            ] => (*sha256, Body::Published),
            [
                Fragment {
                    body: FragmentBody::Whole(sha256, held),
                    ..
                },
            ] => (*sha256, Body::New(held.clone())),
            _ => join_bodies(fragments, size, shop)?,
        };
        Ok(Self {
            name,
            sha256,
            size,
            metas,
            body,
        })
    }
}

/// The entries of all fragments, their offsets counted from the start of the Shard.
fn metas(fragments: &[Fragment]) -> Vec<IndexedMeta> {
    let mut start = 0;
    let mut metas = Vec::with_capacity(fragments.iter().map(|fragment| fragment.metas.len()).sum());
    for fragment in fragments {
        let shifted = fragment.metas.iter().cloned();
        metas.extend(shifted.map(|meta| IndexedMeta {
            offset: meta.offset + start,
            ..meta
        }));
        start += fragment.size;
    }
    metas
}

fn join_bodies(fragments: &[Fragment], size: u64, shop: &Shop) -> Result<(Sha256, Body), RenderError> {
    let mut hasher = Hasher::new();
    let mut encoder = encoder(Vec::new(), shop.settings.shard_level, size).map_err(RenderError::Scratch)?;
    for fragment in fragments {
        copy_lines(&fragment.compressed(shop)?, |block| {
            hasher.update(block);
            encoder.write_all(block)
        })
        .map_err(RenderError::Scratch)?;
    }
    let sha256 = hasher.finish();
    if shop.published.contains(&sha256) {
        return Ok((sha256, Body::Published));
    }
    let held = encoder
        .finish()
        .and_then(|bytes| shop.scratch.hold(bytes))
        .map_err(RenderError::Scratch)?;
    Ok((sha256, Body::New(Arc::new(held))))
}

impl Fragment {
    fn compressed(&self, shop: &Shop) -> Result<Vec<u8>, RenderError> {
        match &self.body {
            FragmentBody::Part(held) | FragmentBody::Whole(_, held) => shop
                .scratch
                .read(held)
                .map(Cow::into_owned)
                .map_err(RenderError::Scratch),
            FragmentBody::Published(sha256) => load(&*shop.published, sha256),
        }
    }
}

pub(crate) fn load(published: &dyn Published, sha256: &Sha256) -> Result<Vec<u8>, RenderError> {
    published.load(sha256).map_err(|source| RenderError::Published {
        sha256: *sha256,
        source,
    })
}

/// A zstd encoder that writes one frame with the content size in its header and a checksum at its end, by which every
/// reader notices flipped bits.
pub(crate) fn encoder<W: Write>(sink: W, level: i32, size: u64) -> io::Result<zstd::Encoder<'static, W>> {
    let mut encoder = zstd::Encoder::new(sink, level)?;
    encoder.set_pledged_src_size(Some(size))?;
    encoder.include_contentsize(true)?;
    encoder.include_checksum(true)?;
    Ok(encoder)
}

/// Decompresses one frame block by block.
pub(crate) fn copy_lines(compressed: &[u8], mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut decoder = zstd::Decoder::with_buffer(compressed)?;
    let mut block = vec![0; 128 << 10];
    loop {
        match decoder.read(&mut block)? {
            0 => return Ok(()),
            length => sink(&block[..length])?,
        }
    }
}
