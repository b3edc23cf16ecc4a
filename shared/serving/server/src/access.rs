//! The access log: a JSON line for each request.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, thread};

use http::{Request, StatusCode};
use serde::Serialize;

/// Lines that wait to be written. Requests never wait: further lines are lost, and counted.
const WAITING_LINES: usize = 8192;

/// Longest wait for the last lines at the end of the process.
const END_WAIT: Duration = Duration::from_secs(2);

/// Log with one JSON line for each request, written by a thread of its own.
#[derive(Clone)]
pub struct AccessLog(Arc<LogThread>);

struct LogThread {
    /// `None` at the end only.
    lines: Option<SyncSender<String>>,
    /// Number of lines that were lost since the last warning.
    lost: AtomicU64,
    ended: parking_lot::Mutex<Receiver<()>>,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessLog")
    }
}

impl AccessLog {
    /// Starts the thread that writes to `to`. Lines that it does not take are lost.
    pub fn start(mut to: impl Write + Send + 'static) -> Self {
        let (lines, waiting) = mpsc::sync_channel::<String>(WAITING_LINES);
        let (end, ended) = mpsc::channel();
        thread::spawn(move || {
            while let Ok(line) = waiting.recv() {
                // A closed pipe is reported nowhere: the log would be told to the same reader.
                if write_waiting(&mut to, line, &waiting).is_err() {
                    break;
                }
            }
            end.send(()).ok();
        });
        Self(Arc::new(LogThread {
            lines: Some(lines),
            lost: AtomicU64::new(0),
            ended: parking_lot::Mutex::new(ended),
        }))
    }

    fn write(&self, line: String) {
        let Some(lines) = &self.0.lines else {
            return;
        };
        match lines.try_send(line) {
            Ok(()) => {
                let lost = self.0.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    tracing::warn!(lines = lost, "lost lines of the access log");
                }
            }
            Err(TrySendError::Full(_)) => {
                self.0.lost.fetch_add(1, Ordering::Relaxed);
            }
            // The reader has gone.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Writes a line and all that wait behind it, and flushes them at once.
fn write_waiting(to: &mut impl Write, first: String, waiting: &Receiver<String>) -> io::Result<()> {
    let mut text = first;
    text.extend(waiting.try_iter().take(WAITING_LINES));
    to.write_all(text.as_bytes())?;
    to.flush()
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.lines = None;
        // A reader that takes nothing must not keep the process.
        self.ended.lock().recv_timeout(END_WAIT).ok();
    }
}

/// Request in the access log. Its line is written when it is dropped, at the end of the answer.
#[derive(Debug)]
pub(crate) struct AccessRecord {
    log: AccessLog,
    begun: Instant,
    time: SystemTime,
    peer: SocketAddr,
    method: String,
    path: String,
    protocol: &'static str,
    /// User whose credentials are right, or that a refused request names.
    pub(crate) user: Option<String>,
    /// `None` for a client that left before there was an answer.
    pub(crate) status: Option<StatusCode>,
    /// Bytes of the body that were handed to the connection.
    pub(crate) bytes: u64,
}

/// Line of the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessLine<'a> {
    time: String,
    peer: SocketAddr,
    user: Option<&'a str>,
    method: &'a str,
    path: &'a str,
    protocol: &'static str,
    status: Option<u16>,
    bytes: u64,
    duration_ms: f64,
}

impl AccessRecord {
    /// Begins the record of a request.
    pub(crate) fn begin<B>(log: &AccessLog, peer: SocketAddr, request: &Request<B>) -> Self {
        let target = request.uri().path_and_query();
        Self {
            log: log.clone(),
            begun: Instant::now(),
            time: SystemTime::now(),
            peer,
            method: request.method().to_string(),
            path: target.map_or_else(String::new, ToString::to_string),
            protocol: protocol(request.version()),
            user: None,
            status: None,
            bytes: 0,
        }
    }

    fn line(&self) -> AccessLine<'_> {
        AccessLine {
            time: humantime::format_rfc3339_millis(self.time).to_string(),
            peer: self.peer,
            user: self.user.as_deref(),
            method: &self.method,
            path: &self.path,
            protocol: self.protocol,
            status: self.status.map(|status| status.as_u16()),
            bytes: self.bytes,
            // Microseconds are exact in a float.
            duration_ms: self.begun.elapsed().as_micros() as f64 / 1000.0,
        }
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        if let Ok(json) = serde_json::to_string(&self.line()) {
            let json = model::text::printable_json(&json);
            self.log.write(format!("{json}\n"));
        }
    }
}

const fn protocol(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_10 => "HTTP/1.0",
        http::Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn request(path: &str) -> Request<()> {
        Request::get(path).body(()).unwrap()
    }

    #[test]
    fn access_line_has_all_fields_and_stays_one_line() {
        let written = Written::default();
        let log = AccessLog::start(written.clone());
        let peer = "192.0.2.1:1234".parse().unwrap();
        let mut record = AccessRecord::begin(&log, peer, &request("/catalogs?a=%0a"));
        record.user = Some("al\nice\u{202e}".to_owned());
        record.status = Some(StatusCode::NOT_FOUND);
        record.bytes = 7;
        drop(record);
        drop(log);
        let text = String::from_utf8(written.0.lock().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{202e}'), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["peer"], "192.0.2.1:1234");
        assert_eq!(line["user"], "al\nice\u{202e}");
        assert_eq!(line["method"], "GET");
        assert_eq!(line["path"], "/catalogs?a=%0a");
        assert_eq!(line["protocol"], "HTTP/1.1");
        assert_eq!(line["status"], 404);
        assert_eq!(line["bytes"], 7);
        assert!(line["durationMs"].is_number(), "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    }

    /// A reader that stands still costs lines, and neither time of requests nor memory.
    #[test]
    fn access_log_whose_reader_stands_still_loses_lines() {
        struct Stuck(Arc<Mutex<()>>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                drop(self.0.lock());
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let gate = Arc::new(Mutex::new(()));
        let log = AccessLog::start(Stuck(gate.clone()));
        let closed = gate.lock();
        let peer = "192.0.2.1:1234".parse().unwrap();
        for _ in 0..3 * WAITING_LINES {
            drop(AccessRecord::begin(&log, peer, &request("/")));
        }
        let lost = log.0.lost.load(Ordering::Relaxed);
        assert!(lost >= WAITING_LINES as u64 - 1, "{lost}");
        drop(closed);
    }
}
