use crate::{Body, Operation, StoreError};
use aws_sdk_s3::primitives::ByteStream;
use futures_util::{StreamExt as _, stream};
use model::Key;

/// Error for a body of another length than its head announced.
#[derive(Debug, thiserror::Error)]
#[error("the body has {found} bytes, {announced} were announced")]
struct WrongLength {
    announced: u64,
    found: u64,
}

struct Reading {
    key: Key,
    stream: ByteStream,
    announced: u64,
    found: u64,
}

/// Returns the bytes of an answer. The SDK compares them with the checksum in the answer, if there is one.
pub(crate) fn body(key: Key, stream: ByteStream, announced: u64) -> Body {
    let reading = Reading {
        key,
        stream,
        announced,
        found: 0,
    };
    stream::try_unfold(reading, next).boxed()
}

async fn next(mut reading: Reading) -> Result<Option<(bytes::Bytes, Reading)>, StoreError> {
    let chunk = reading.stream.next().await.transpose();
    let chunk = chunk.map_err(|error| StoreError::failed(Operation::Get, &reading.key, error))?;
    reading.found += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
    let ended_early = chunk.is_none() && reading.found < reading.announced;
    if ended_early || reading.found > reading.announced {
        let (announced, found) = (reading.announced, reading.found);
        let wrong = WrongLength { announced, found };
        return Err(StoreError::failed(Operation::Get, &reading.key, wrong));
    }
    Ok(chunk.map(|chunk| (chunk, reading)))
}
