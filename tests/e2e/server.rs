//! Attacks on the server over real sockets, with short limits.

use std::{net::SocketAddr, time::Duration};

use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{binary::Server, work::Work};

/// Longer than every limit in this file, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

struct Site {
    server: Server,
    _work: Work,
}

impl Site {
    /// Starts a server of the small catalog. `limits` is written as in `catalogs.yaml`.
    fn start(limits: &str) -> Self {
        let work = Work::published();
        work.write("catalogs.yaml", format!("server: {{limits: {{{limits}}}}}"));
        let server = work.serve("--config catalogs.yaml");
        Self {
            server,
            _work: work,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.url["http://".len()..].parse().unwrap()
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.unwrap()
    }

    /// Sends bytes and returns the answer up to the end of the connection.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        rest(&mut stream).await
    }

    async fn metric(&self, line: &str) -> bool {
        self.server.text("/metrics").await.contains(line)
    }

    /// Waits until the metrics contain a line.
    async fn counts(&self, line: &str) {
        until(line, async || self.metric(line).await).await;
    }

    async fn is_fine(&self) {
        assert_eq!(self.server.status("/catalogs").await, 200);
    }
}

/// Reads up to the end of the connection, and fails if there is none.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset is also an end of the connection.
    drop(end.expect("the server closes"));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_request_head_is_closed_and_blocks_no_other_client() {
    let site = Site::start("firstRequest: 1s");
    let mut drips = Vec::new();
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for begin in ["", "G", "GET / HTTP/1.1\r\nHost: a\r\n", preface] {
        let mut stream = site.connect().await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        let begun = Instant::now();
        drips.push(tokio::spawn(async move {
            // Until the server closes the connection.
            while begun.elapsed() < PATIENCE && stream.write_all(b"a").await.is_ok() {
                sleep(Duration::from_millis(100)).await;
            }
            begun.elapsed()
        }));
    }
    site.is_fine().await;
    for drip in drips {
        assert!(drip.await.unwrap() < PATIENCE);
    }
    site.counts("connections_closed_total{reason=\"silent\"}")
        .await;
    site.is_fine().await;
}

/// Sends requests for more than the socket buffers hold, and reads nothing.
async fn reads_nothing(site: &Site, buffer: u32) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(buffer).unwrap();
    let mut stream = socket.connect(site.address()).await.unwrap();
    let asks = "GET /catalogs/demo/all.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000);
    // The server stops reading when it has too much to send, so the write may not end.
    drop(timeout(Duration::from_secs(1), stream.write_all(asks.as_bytes())).await);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_reader_is_closed_and_slow_reader_is_served() {
    let site = Site::start("stalled: 2s, idle: 2s");
    let stream = reads_nothing(&site, 4096).await;
    site.counts("connections_closed_total{reason=\"stalled\"} 1")
        .await;
    drop(stream);
    let mut slow = reads_nothing(&site, 256 << 10).await;
    let (mut seen, begun) = (0, Instant::now());
    let mut chunk = vec![0; 128 << 10];
    while begun.elapsed() < Duration::from_secs(5) {
        seen += slow
            .read_exact(&mut chunk)
            .await
            .expect("a slow reader is served on");
        sleep(Duration::from_millis(200)).await;
    }
    assert!(seen > 512 << 10, "{seen}");
    assert!(
        !site
            .metric("connections_closed_total{reason=\"stalled\"} 2")
            .await
    );
    site.is_fine().await;
}

/// Sends a request on a connection and reads the start of its answer.
async fn ask(stream: &mut TcpStream) -> std::io::Result<[u8; 12]> {
    let mut answer = [0; 12];
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        .await?;
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_above_limit_replaces_the_one_idle_for_longest() {
    let site = Site::start("connections: 3");
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = site.connect().await;
        ask(&mut stream).await.unwrap();
        held.push(stream);
        sleep(Duration::from_secs(1)).await;
    }
    let mut fourth = site.connect().await;
    assert_eq!(&ask(&mut fourth).await.unwrap(), b"HTTP/1.1 200");
    // The answers of the first are read up to the end of its connection.
    rest(&mut held[0]).await;
    let mut buffer = [0; 4096];
    let third = held[2].try_read(&mut buffer).unwrap();
    assert!(third > 0, "the rest of its answer, and no end");
    assert_eq!(&ask(&mut held[2]).await.unwrap(), b"HTTP/1.1 200");
    // Asked on an open connection: a new one would replace another.
    let metrics = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    fourth.write_all(metrics).await.unwrap();
    let metrics = rest(&mut fourth).await;
    assert!(
        metrics.contains("connections_closed_total{reason=\"replaced\"} 1"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_above_limit_of_busy_ones_is_closed() {
    let site = Site::start("connections: 3");
    let mut held = Vec::new();
    // Connections before their first request are not idle: they have ten seconds for it.
    for _ in 0..3 {
        held.push(site.connect().await);
    }
    assert_eq!(rest(&mut site.connect().await).await, "");
    held.clear();
    let mut count = 1;
    // The server may not have noticed yet that connections were closed.
    while ask(&mut site.connect().await).await.is_err() {
        count += 1;
        assert!(count < 100, "no connection becomes free");
        sleep(Duration::from_millis(50)).await;
    }
    site.counts(&format!(
        "connections_closed_total{{reason=\"full\"}} {count}"
    ))
    .await;
    site.is_fine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_head_and_content_above_limit_are_refused() {
    let site = Site::start("");
    let get = |path: &str, fields: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n")
    };
    let catalogs = |fields: &str| get("/catalogs", fields);
    let many: String = (0..120)
        .map(|number| format!("x-{number}: a\r\n"))
        .collect();
    let (long, large) = ("uri-too-long", "content-too-large");
    let chunks = "4\r\nbody\r\n0\r\n\r\n";
    for (request, status, word) in [
        (catalogs(""), "200", ""),
        // Two hosts (RFC 9112, section 3.2).
        (catalogs("Host: b\r\n"), "400", "bad-host"),
        (
            get(&format!("/{}", "a".repeat(7999)), ""),
            "404",
            "unknown-path",
        ),
        (get(&format!("/{}", "a".repeat(8000)), ""), "414", long),
        (get(&format!("/c?{}", "a=b&".repeat(3000)), ""), "414", long),
        (
            catalogs(&format!("x: {}\r\n", "a".repeat(20_000))),
            "200",
            "",
        ),
        (
            catalogs(&format!("x: {}\r\n", "a".repeat(40_000))),
            "431",
            "",
        ),
        (catalogs(&many), "431", ""),
        (catalogs("Content-Length: 4\r\n") + "body", "413", large),
        (catalogs("Content-Length: 1000000000\r\n"), "413", large),
        (
            catalogs("Transfer-Encoding: chunked\r\n") + chunks,
            "413",
            large,
        ),
        (
            get("/v2/", "Content-Length: 4\r\n") + "body",
            "413",
            "UNSUPPORTED",
        ),
        (
            catalogs("").replacen("GET", "POST", 1),
            "405",
            "method-not-allowed",
        ),
        (
            catalogs("Content-Length: 4\r\nContent-Length: 5\r\n"),
            "400",
            "",
        ),
        ("nonsense\r\n\r\n".to_owned(), "400", ""),
    ] {
        let answer = site.exchange(request.as_bytes()).await;
        let begin = &request[..request.len().min(60)];
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{begin}: {answer}"
        );
        assert!(answer.contains(word), "{begin}: {answer}");
    }
}

/// A request behind content may come from another client of a proxy, so it is not answered (request
/// smuggling).
#[tokio::test(flavor = "multi_thread")]
async fn request_behind_content_is_not_answered() {
    let site = Site::start("");
    for method in ["GET", "POST", "PUT"] {
        let first =
            format!("{method} /catalogs HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
        let request = format!("{first}GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = site.exchange(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_with_stalled_client_ends_after_drain() {
    let site = Site::start("drain: 1s");
    let _stuck = reads_nothing(&site, 4096).await;
    let Site { server, _work } = site;
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(begun.elapsed() < PATIENCE);
}

/// `nc -N` closes its side after the request. The answer must still be whole.
#[tokio::test(flavor = "multi_thread")]
async fn half_closed_connection_gets_the_whole_answer() {
    let site = Site::start("");
    let length = site.server.body("/catalogs/demo/api/v1/all").await.len();
    for _ in 0..20 {
        let mut stream = site.connect().await;
        let request =
            b"GET /catalogs/demo/api/v1/all HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = rest(&mut stream).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(body.len() >= length, "{} of {length}", body.len());
    }
}
