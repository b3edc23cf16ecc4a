//! One connection too many.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    time::timeout,
};

/// How many are told at the same time; more are only closed.
const TOLD: usize = 64;
/// How long the client may take to hear it.
const PATIENCE: Duration = Duration::from_secs(1);
/// The requests of such a client are not looked at, so this is for all of them.
const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    content-length: 134\r\n\
    cache-control: no-store\r\n\
    retry-after: 5\r\n\
    connection: close\r\n\r\n\
    {\"type\":\"urn:problem-type:catalog-mirror:too-many-connections\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"try again later\"}\n";

/// Tells those who are not accepted why.
#[derive(Debug, Clone)]
pub(crate) struct Refusal(Arc<Semaphore>);

impl Refusal {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(TOLD)))
    }

    /// Answers without reading, and then reads until the client has gone: closing a socket with bytes that nobody has
    /// read makes the other side drop what it has not read either.
    pub(crate) fn tell(&self, mut stream: TcpStream) {
        let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            let told = async {
                stream.write_all(ANSWER).await?;
                stream.shutdown().await?;
                let mut sink = [0; 1024];
                while stream.read(&mut sink).await? > 0 {}
                std::io::Result::Ok(())
            };
            // Whether it was heard is not ours to know.
            drop(timeout(PATIENCE, told).await);
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        let text = std::str::from_utf8(ANSWER).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
        assert!(body.starts_with('{') && body.ends_with("}\n"));
    }
}
