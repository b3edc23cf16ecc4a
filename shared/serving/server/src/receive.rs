use axum::body::Body;
use http_body_util::BodyExt;

/// Reason for which the content of a request is not received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// It has more bytes than it may have.
    #[error("the content of the request is too large")]
    TooLarge,
    /// The client has ended it before its end.
    #[error("the content of the request is broken off")]
    BrokenOff,
}

/// Receives the content of a request, of at most `max` bytes. The caller limits the time for it.
///
/// Pieces are joined as they come, and no memory is taken for what was announced only: a client may
/// send pieces of one byte, each of which would take a hundred, or announce what it never sends.
///
/// # Errors
/// [`ReceiveError`].
pub async fn receive(mut body: Body, max: usize) -> Result<Vec<u8>, ReceiveError> {
    let mut content = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ReceiveError::BrokenOff)?;
        // Trailers say nothing.
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if piece.len() > max - content.len() {
            return Err(ReceiveError::TooLarge);
        }
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::io;

    use bytes::Bytes;
    use futures_util::stream;

    use super::*;

    fn body(pieces: &[Result<&'static str, io::ErrorKind>]) -> Body {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| piece.map(Bytes::from).map_err(io::Error::from))
            .collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn receive_joins_pieces_up_to_the_limit() {
        let pieces = [Ok("ab"), Ok(""), Ok("cde")];
        assert_eq!(receive(body(&pieces), 5).await.unwrap(), b"abcde");
        assert_eq!(receive(body(&pieces), 4).await, Err(ReceiveError::TooLarge));
        assert_eq!(receive(Body::empty(), 0).await.unwrap(), b"");
        let broken = [Ok("ab"), Err(io::ErrorKind::ConnectionReset)];
        assert_eq!(
            receive(body(&broken), 9).await,
            Err(ReceiveError::BrokenOff)
        );
    }
}
