//! The server under attack, over real sockets, with limits short enough to wait for.

use std::{fs, net::SocketAddr, time::Duration};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::{Instant, sleep, timeout},
};

use crate::support::{
    binary::{Server, run},
    catalogs, http,
};

/// Longer than every limit that is set here, with what a busy machine adds.
const PATIENCE: Duration = Duration::from_secs(20);

struct Site {
    server: Server,
    _folder: TempDir,
}

impl Site {
    /// A server of the small catalog with limits as `catalogs.yaml` says them.
    fn start(limits: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let store = folder.path().join("store").display().to_string();
        let source = format!("demo=oci:{}:v1", catalogs::example_layout().display());
        run(["poll", "--store", &store, "--catalog", &source]).exits(10);
        let file = folder.path().join("catalogs.yaml");
        fs::write(&file, format!("server: {{limits: {{{limits}}}}}")).unwrap();
        let config = file.display().to_string();
        let server = Server::start(["serve", "--no-poll", "--store", &store, "--config", &config]);
        Self {
            server,
            _folder: folder,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.url["http://".len()..].parse().unwrap()
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address()).await.unwrap()
    }

    /// What comes back for some bytes, until the server closes.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        rest(&mut stream).await
    }

    async fn metric(&self, line: &str) -> bool {
        http::text(&format!("{}/metrics", self.server.url)).await.contains(line)
    }

    /// Waits for a line of the metrics.
    async fn counts(&self, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.metric(line).await {
            assert!(Instant::now() < deadline, "{line}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_fine(&self) {
        assert_eq!(
            http::get(&format!("{}/catalogs", self.server.url), &[]).await.status(),
            200
        );
    }
}

/// Everything until the end, which has to come.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    drop(
        timeout(PATIENCE, stream.read_to_end(&mut bytes))
            .await
            .expect("the server closes"),
    );
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_drips_its_head_is_closed_and_holds_nobody_up() {
    let site = tokio::task::block_in_place(|| Site::start("firstRequest: 1s"));
    let mut drips = Vec::new();
    for begin in [
        "",
        "G",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = site.connect().await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        let begun = Instant::now();
        drips.push(tokio::spawn(async move {
            // Until the server has had enough.
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
    site.counts("connections_closed_total{reason=\"silent\"}").await;
    site.is_fine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_nothing_more_is_closed() {
    let site = tokio::task::block_in_place(|| Site::start("idle: 500ms"));
    let answer = site.exchange(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    site.counts("connections_closed_total{reason=\"idle\"}").await;
}

/// Asks for more than the buffers between the two hold, and takes nothing of it.
async fn reads_nothing(site: &Site, buffer: u32) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(buffer).unwrap();
    let mut stream = socket.connect(site.address()).await.unwrap();
    let asks = "GET /catalogs/demo/all.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000);
    // Once it has too much to send, the server reads no more either.
    drop(timeout(Duration::from_secs(1), stream.write_all(asks.as_bytes())).await);
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_is_closed_and_who_reads_slowly_is_not() {
    let site = tokio::task::block_in_place(|| Site::start("stalled: 2s, idle: 2s"));
    let stream = reads_nothing(&site, 4096).await;
    site.counts("connections_closed_total{reason=\"stalled\"} 1").await;
    drop(stream);
    let mut slow = reads_nothing(&site, 256 << 10).await;
    let (mut seen, begun) = (0, Instant::now());
    let mut chunk = vec![0; 128 << 10];
    while begun.elapsed() < Duration::from_secs(5) {
        seen += slow.read_exact(&mut chunk).await.expect("a slow reader is served on");
        sleep(Duration::from_millis(200)).await;
    }
    assert!(seen > 512 << 10, "{seen}");
    assert!(!site.metric("connections_closed_total{reason=\"stalled\"} 2").await);
    site.is_fine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_too_many_is_told_so() {
    let site = tokio::task::block_in_place(|| Site::start("connections: 3"));
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = site.connect().await;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        held.push(stream);
    }
    let refused = site.exchange(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"),
        "{refused}"
    );
    held.clear();
    let mut count = 1;
    // The server need not have seen yet that there is room.
    while http::get(&format!("{}/healthz", site.server.url), &[]).await.status() == 503 {
        count += 1;
        assert!(count < 100, "nobody makes room");
        sleep(Duration::from_millis(50)).await;
    }
    site.counts(&format!("connections_closed_total{{reason=\"full\"}} {count}"))
        .await;
    site.is_fine().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_and_contents_have_their_limits() {
    let site = tokio::task::block_in_place(|| Site::start(""));
    let get = |path: &str, fields: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    let many: String = (0..120).map(|number| format!("x-{number}: a\r\n")).collect();
    for (request, status, word) in [
        (get("/catalogs", ""), "200", ""),
        (get(&format!("/{}", "a".repeat(7999)), ""), "404", "unknown-path"),
        (get(&format!("/{}", "a".repeat(8000)), ""), "414", "uri-too-long"),
        (
            get(&format!("/catalogs?{}", "a=b&".repeat(3000)), ""),
            "414",
            "uri-too-long",
        ),
        (get("/catalogs", &format!("x: {}\r\n", "a".repeat(20_000))), "200", ""),
        (get("/catalogs", &format!("x: {}\r\n", "a".repeat(40_000))), "431", ""),
        (get("/catalogs", &many), "431", ""),
        (
            get("/catalogs", "Content-Length: 4\r\n") + "body",
            "413",
            "content-too-large",
        ),
        (
            get("/catalogs", "Content-Length: 1000000000\r\n"),
            "413",
            "content-too-large",
        ),
        (
            get("/catalogs", "Transfer-Encoding: chunked\r\n") + "4\r\nbody\r\n0\r\n\r\n",
            "413",
            "content-too-large",
        ),
        (get("/v2/", "Content-Length: 4\r\n") + "body", "413", "UNSUPPORTED"),
        (
            get("/catalogs", "").replacen("GET", "POST", 1),
            "405",
            "method-not-allowed",
        ),
        (
            get("/catalogs", "Content-Length: 4\r\nContent-Length: 5\r\n"),
            "400",
            "",
        ),
        ("nonsense\r\n\r\n".to_owned(), "400", ""),
    ] {
        let answer = site.exchange(request.as_bytes()).await;
        let begin = &request[..request.len().min(60)];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{begin}: {answer}");
        assert!(answer.contains(word), "{begin}: {answer}");
    }
}

/// Another request behind the content of a first one is not answered: who wrote it is not known.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_smuggled_behind_content() {
    let site = tokio::task::block_in_place(|| Site::start(""));
    for method in ["GET", "POST", "PUT"] {
        let first = format!("{method} /catalogs HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody");
        let request = format!("{first}GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = site.exchange(request.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_has_an_end() {
    let site = tokio::task::block_in_place(|| Site::start("drain: 1s"));
    let _stuck = reads_nothing(&site, 4096).await;
    let Site { server, _folder } = site;
    let begun = Instant::now();
    assert_eq!(tokio::task::block_in_place(|| server.terminate()), Some(0));
    assert!(begun.elapsed() < PATIENCE);
}
