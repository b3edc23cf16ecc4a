//! The open connections, room for new ones, and the answer to those above the limit.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::watch::ConnectionWatch;

/// Shortest idle time of a connection that makes room for a new one. A client that sends its next request at once does not
/// meet the close of its connection.
const IDLE_MIN: Duration = Duration::from_millis(500);

/// Longest wait for the end of the connection that makes room. Closing an idle connection takes a round trip at most.
const ROOM_WAIT: Duration = Duration::from_secs(2);

/// Open connections, at most a fixed number of them.
///
/// A server with thousands of clients that ask every ten minutes is full of idle connections. Refusing new clients because
/// of them would be wrong, so the connection that has been idle for longest is closed for a new one.
#[derive(Debug)]
pub(crate) struct Connections {
    permits: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
    /// Metric with the number of open connections.
    count: Gauge,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Number of the next connection.
    next: u64,
    watches: HashMap<u64, Arc<ConnectionWatch>>,
}

/// Place of one connection. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

/// Place that is free at once, or soon.
#[derive(Debug)]
pub(crate) enum Room {
    Free(OwnedSemaphorePermit),
    /// An idle connection was told to end.
    Soon,
}

impl Connections {
    pub(crate) fn new(limit: usize, count: Gauge) -> Arc<Self> {
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(limit)),
            open: Mutex::default(),
            count,
        })
    }

    /// Finds room for one more connection. `None` if the server is full and no connection is idle.
    pub(crate) fn find_room(&self) -> Option<Room> {
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => Some(Room::Free(permit)),
            Err(_) => self.close_idle().then_some(Room::Soon),
        }
    }

    /// Takes the place that [`Connections::find_room`] has found. `None` if it does not become free in time.
    pub(crate) async fn take(self: Arc<Self>, room: Room, watch: Arc<ConnectionWatch>) -> Option<ConnectionPlace> {
        let permit = match room {
            Room::Free(permit) => permit,
            Room::Soon => {
                let free = timeout(ROOM_WAIT, Arc::clone(&self.permits).acquire_owned()).await;
                free.ok()?.ok()?
            }
        };
        let number = {
            let mut open = self.open();
            open.next += 1;
            let number = open.next;
            open.watches.insert(number, watch);
            number
        };
        self.count.inc();
        Some(ConnectionPlace {
            connections: self,
            number,
            _permit: permit,
        })
    }

    /// Ends the connection that has been idle for longest. Returns false if none is idle.
    fn close_idle(&self) -> bool {
        let open = self.open();
        let idle = open
            .watches
            .values()
            .filter_map(|watch| Some((watch.idle_for()?, watch)));
        match idle.max_by_key(|(idle, _)| *idle) {
            Some((idle, watch)) if idle >= IDLE_MIN => {
                watch.replaced.cancel();
                true
            }
            _ => false,
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.connections.open().watches.remove(&self.number);
        self.connections.count.dec();
    }
}

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
    use super::*;
    use tokio::{net::TcpListener, time::sleep};

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
