//! Parts of published Shards, whose lines are copied and not parsed.

use std::io::{self, BufReader, Cursor, Read};

use crate::context::RenderContext;
use crate::stored::load;
use crate::{RenderError, ShardPart};

/// Reader of parts of one published Shard. Parts that come in their order are read in one pass.
#[derive(Default)]
pub(crate) struct PartReader(Option<OpenShard>);

struct OpenShard {
    decoder: zstd::Decoder<'static, BufReader<Cursor<Vec<u8>>>>,
    position: u64,
}

impl PartReader {
    /// Passes the lines of a part to `sink`, block by block.
    pub(crate) fn read(
        &mut self,
        part: &ShardPart,
        context: &RenderContext,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), RenderError> {
        let stored = part.shard.0.stored;
        let damaged = |_| RenderError::Damaged(stored.sha256);
        self.0.take_if(|open| open.position > part.range.start);
        let open = match &mut self.0 {
            Some(open) => open,
            none => none.insert(OpenShard {
                decoder: zstd::Decoder::new(Cursor::new(load(&*context.stored, &stored)?))
                    .map_err(damaged)?,
                position: 0,
            }),
        };
        let mut block = vec![0; 128 << 10];
        while open.position < part.range.end {
            let is_before = open.position < part.range.start;
            let end = if is_before {
                part.range.start
            } else {
                part.range.end
            };
            let length = (block.len() as u64).min(end - open.position) as usize;
            open.decoder
                .read_exact(&mut block[..length])
                .map_err(damaged)?;
            open.position += length as u64;
            if is_before {
                // Parts out of their order could make it skip the same lines again and again.
                let _ = context.settings.budget.charge_bytes(length);
                context.check_budget()?;
            } else {
                sink(&block[..length]).map_err(RenderError::Scratch)?;
            }
        }
        Ok(())
    }
}
