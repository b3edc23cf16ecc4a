use bytes::Bytes;
use futures_util::TryStreamExt;
use registry::LineRange;
use tonic::Status;

use crate::{PublishedState, published::ShardChunks, status::of_published};

/// Reader of the lines of one Shard, from the first to the last.
pub(crate) struct LineReader {
    chunks: ShardChunks,
    /// The part of the last chunk that was not read.
    rest: Bytes,
    /// Offset of its first byte.
    position: u64,
}

impl LineReader {
    pub(crate) async fn open(state: &dyn PublishedState, package: &str) -> Result<Self, Status> {
        Ok(Self {
            chunks: state.shard(package).await.map_err(of_published)?,
            rest: Bytes::new(),
            position: 0,
        })
    }

    /// Returns the next bytes, whatever lines they are of.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Status> {
        if self.rest.is_empty() {
            match self.chunks.try_next().await.map_err(of_published)? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(None),
            }
        }
        self.position += self.rest.len() as u64;
        Ok(Some(std::mem::take(&mut self.rest)))
    }

    /// Returns the next line that lies in a range, with its newline. Ranges are asked for in their order.
    pub(crate) async fn next(&mut self, range: &LineRange) -> Result<Option<Vec<u8>>, Status> {
        let offsets = range.offsets();
        let mut line = Vec::new();
        while self.position < offsets.end && line.last() != Some(&b'\n') {
            let from = self.position;
            let Some(mut chunk) = self.chunk().await? else {
                return Err(Status::data_loss("a package ends before its lines"));
            };
            let at = |offset: u64| {
                usize::try_from(offset.saturating_sub(from))
                    .unwrap_or(usize::MAX)
                    .min(chunk.len())
            };
            let (start, end) = (at(offsets.start), at(offsets.end));
            let newline = chunk[start..end].iter().position(|byte| *byte == b'\n');
            let end = newline.map_or(end, |newline| start + newline + 1);
            self.rest = chunk.split_off(end);
            self.position = from + end as u64;
            line.extend_from_slice(&chunk[start..]);
        }
        Ok(Some(line).filter(|line| !line.is_empty()))
    }
}
