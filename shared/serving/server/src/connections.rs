//! The open connections, and room for new ones.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use slab::Slab;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::watch::ConnectionWatch;

/// Shortest idle time of a connection that makes room for a new one. A client that sends its next
/// request at once does not meet the close of its connection.
const IDLE_MIN: Duration = Duration::from_millis(500);

/// Longest wait for the end of the connection that makes room. Closing an idle connection takes a
/// round trip at most.
const ROOM_WAIT: Duration = Duration::from_secs(2);

/// Open connections, at most a fixed number of them.
///
/// A server with thousands of clients that ask every ten minutes is full of idle connections.
/// Refusing new clients because of them would be wrong, so the connection that has been idle for
/// longest is closed for a new one.
#[derive(Debug)]
pub(crate) struct Connections {
    permits: Arc<Semaphore>,
    open: Mutex<Slab<Arc<ConnectionWatch>>>,
    /// Metric with the number of open connections.
    count: Gauge,
}

/// Place of one connection. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    connections: Arc<Connections>,
    /// Key of the connection among the open ones.
    key: usize,
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

    /// Finds room for one more connection: a free place, or that of the connection that has been
    /// idle for longest, which is told to end. `None` if the server is full and no connection is
    /// idle.
    pub(crate) fn find_room(&self) -> Option<Room> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Some(Room::Free(permit));
        }
        let open = self.open.lock();
        let idle = open
            .iter()
            .filter_map(|(_, watch)| Some((watch.idle_for()?, watch)));
        let (_, watch) = idle
            .filter(|(idle, _)| *idle >= IDLE_MIN)
            .max_by_key(|(idle, _)| *idle)?;
        watch.replaced.cancel();
        Some(Room::Soon)
    }

    /// Takes the place that [`Connections::find_room`] has found. `None` if it does not become free
    /// in time.
    pub(crate) async fn take(
        self: Arc<Self>,
        room: Room,
        watch: Arc<ConnectionWatch>,
    ) -> Option<ConnectionPlace> {
        let permit = match room {
            Room::Free(permit) => permit,
            Room::Soon => {
                let free = timeout(ROOM_WAIT, Arc::clone(&self.permits).acquire_owned()).await;
                free.ok()?.ok()?
            }
        };
        let key = self.open.lock().insert(watch);
        self.count.inc();
        Some(ConnectionPlace {
            connections: self,
            key,
            _permit: permit,
        })
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.connections.open.lock().remove(self.key);
        self.connections.count.dec();
    }
}
