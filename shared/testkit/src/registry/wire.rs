//! A server below HTTP: it sends given bytes, whatever the request is.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::serving::bind;

/// Step of an answer of a [`Wire`].
#[derive(Clone, Debug)]
pub enum Say {
    /// Sends these bytes at once.
    Bytes(Vec<u8>),
    /// Sends these bytes this many times.
    Again(Vec<u8>, usize),
    /// Sends these bytes one by one, each after this pause.
    Drip(Vec<u8>, Duration),
    /// Sends nothing for this duration.
    Wait(Duration),
}

/// Server on a free port of 127.0.0.1, until it is dropped. It closes each connection after the
/// last step.
pub struct Wire {
    host: String,
    heard: Arc<Heard>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Heard {
    requests: Mutex<Vec<String>>,
    bytes_said: AtomicUsize,
}

impl Wire {
    /// Starts a server that takes these steps on every connection, after the first bytes of the
    /// client.
    pub async fn start(says: Vec<Say>) -> Self {
        let (listener, host) = bind(Ipv4Addr::LOCALHOST.into()).await;
        let heard = Arc::<Heard>::default();
        let task = tokio::spawn(listen(listener, says.into(), Arc::clone(&heard)));
        Self { host, heard, task }
    }

    /// Starts a server that answers with these bytes.
    pub async fn answering(text: impl Into<Vec<u8>>) -> Self {
        Self::start(vec![Say::Bytes(text.into())]).await
    }

    /// Returns the address as in URLs, `127.0.0.1:PORT`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the first bytes of each connection, in the order of arrival.
    pub fn requests(&self) -> Vec<String> {
        self.heard.requests.lock().clone()
    }

    /// Returns the number of bytes that were sent.
    pub fn bytes_said(&self) -> usize {
        self.heard.bytes_said.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(listener: TcpListener, says: Arc<[Say]>, heard: Arc<Heard>) {
    while let Ok((stream, _)) = listener.accept().await {
        let says = Arc::clone(&says);
        let heard = Arc::clone(&heard);
        // A client that closes the connection needs no more answer.
        tokio::spawn(async move { talk(stream, &says, &heard).await.unwrap_or_default() });
    }
}

async fn talk(mut stream: TcpStream, says: &[Say], heard: &Heard) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let count = stream.read(&mut buffer).await?;
    let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
    heard.requests.lock().push(text);
    for say in says {
        match say {
            Say::Bytes(bytes) => heard.say(&mut stream, bytes).await?,
            Say::Wait(time) => sleep(*time).await,
            Say::Again(bytes, times) => {
                for _ in 0..*times {
                    heard.say(&mut stream, bytes).await?;
                }
            }
            Say::Drip(bytes, every) => {
                for byte in bytes.chunks(1) {
                    sleep(*every).await;
                    heard.say(&mut stream, byte).await?;
                }
            }
        }
    }
    stream.shutdown().await
}

impl Heard {
    async fn say(&self, stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
        stream.write_all(bytes).await?;
        self.bytes_said.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(())
    }
}
