//! One connection too many.

use std::{io, sync::Arc, time::Duration};

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

    /// Answers once something was asked, since clients take an answer that comes before for a broken server. Then reads
    /// until the client has gone: closing a socket with bytes that nobody has read makes the other side drop what it has
    /// not read either.
    pub(crate) fn tell(&self, mut stream: TcpStream) {
        let Ok(permit) = Arc::clone(&self.0).try_acquire_owned() else {
            return;
        };
        tokio::spawn(async move {
            // Whether it was heard is not ours to know.
            drop(timeout(PATIENCE, answer(&mut stream)).await);
            drop(permit);
        });
    }
}

async fn answer(stream: &mut TcpStream) -> io::Result<()> {
    let mut sink = [0; 1024];
    if stream.read(&mut sink).await? == 0 {
        return Ok(());
    }
    stream.write_all(ANSWER).await?;
    stream.shutdown().await?;
    while stream.read(&mut sink).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, time::sleep};

    use super::*;

    #[tokio::test]
    async fn nobody_is_answered_before_asking() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        Refusal::new().tell(listener.accept().await.unwrap().0);
        sleep(Duration::from_millis(50)).await;
        let early = client.try_read(&mut [0; 1]);
        assert_eq!(early.unwrap_err().kind(), io::ErrorKind::WouldBlock);

        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, ANSWER);
    }

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
