//! The answer to connections above the limit.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
    time::timeout,
};

/// Connections that are answered at the same time. Further ones are closed without an answer, so that a flood costs
/// nothing.
const CONCURRENT: usize = 64;

/// Time in which the client must send its request and read the answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// The complete answer. It is the same for all requests, which are not parsed.
const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    content-length: 134\r\n\
    cache-control: no-store\r\n\
    retry-after: 5\r\n\
    connection: close\r\n\r\n\
    {\"type\":\"urn:problem-type:catalog-mirror:too-many-connections\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"try again later\"}\n";

/// Answers connections that are not served with 503.
#[derive(Debug, Clone)]
pub(crate) struct OverloadResponder(Arc<Semaphore>);

impl OverloadResponder {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(CONCURRENT)))
    }

    /// Answers the connection in the background and closes it.
    pub(crate) fn answer(&self, mut stream: TcpStream) {
        let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            // Best effort: a client that is gone does not need the answer.
            drop(timeout(ANSWER_TIME, exchange(&mut stream)).await);
            drop(permit);
        });
    }
}

async fn exchange(stream: &mut TcpStream) -> io::Result<()> {
    let mut sink = [0; 1024];
    // Clients take an answer that comes before their request for a broken server.
    if stream.read(&mut sink).await? == 0 {
        return Ok(());
    }
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes resets the connection, and the client would lose the answer.
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, time::sleep};

    use super::*;

    #[tokio::test]
    async fn overload_answer_waits_for_the_request() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        OverloadResponder::new().answer(listener.accept().await.unwrap().0);
        sleep(Duration::from_millis(50)).await;
        let early = client.try_read(&mut [0; 1]);
        assert_eq!(early.unwrap_err().kind(), io::ErrorKind::WouldBlock);

        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, ANSWER);
    }

    #[test]
    fn overload_answer_has_its_content_length() {
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
