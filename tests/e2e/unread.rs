//! Answers that no client reads, over HTTP/2 with nothing but frames (RFC 9113).

use std::{fs, net::SocketAddr, time::Duration};

use testkit::until;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::support::http::{field, get};
use crate::support::{binary::Server, work::Work};

/// Lines that are compressed while they are sent, because nothing is kept in memory.
const LINES: &str = "/catalogs/demo/api/v1/metas?schema=olm.bundle";

/// A server without caches of a catalog that does not fit into the buffers of a connection.
struct Site {
    server: Server,
    _work: Work,
}

impl Site {
    /// `limits` is written as in `catalogs.yaml`.
    fn start(limits: &str) -> Self {
        let work = Work::new();
        work.write("catalog/catalog.json", catalog());
        work.run("poll --store store --catalog demo=dir:catalog")
            .exits(0);
        work.write("catalogs.yaml", format!("server: {{limits: {{{limits}}}}}"));
        let server = work.serve("--config catalogs.yaml --cache-size 0");
        Self {
            server,
            _work: work,
        }
    }

    /// Opens a connection whose client asks for so many answers and takes none of their bytes.
    async fn ask(&self, streams: u32) -> TcpStream {
        let address: SocketAddr = self.server.url["http://".len()..].parse().unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&unread(streams)).await.unwrap();
        stream
    }

    async fn get_lines(&self) -> reqwest::Response {
        get(&self.server.url(LINES), &[("accept-encoding", "zstd")]).await
    }

    async fn metric(&self, name: &str) -> u64 {
        let page = self.server.text("/metrics").await;
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|rest| rest.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{name}: {page}"))
    }

    async fn taken(&self) -> u64 {
        self.metric("catalog_mirror_answer_memory_taken_bytes")
            .await
    }

    /// Returns the largest memory that the process ever took, in MB.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap().split_whitespace().next().unwrap();
        kilobytes.parse::<u64>().unwrap() / 1024
    }
}

/// Returns a package of 4 MB that hardly gets smaller by compression.
fn catalog() -> String {
    let mut text = r#"{"schema":"olm.package","name":"p"}"#.to_owned();
    let mut random = 1_u64;
    for number in 0..64 {
        let digits = (0..4096).map(|_| {
            // Numbers of Knuth's generator MMIX.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            format!("{random:016x}")
        });
        let digits: String = digits.collect();
        text += &format!(
            r#"{{"schema":"olm.bundle","package":"p","name":"b{number}","text":"{digits}"}}"#
        );
    }
    text
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the preface, settings with windows of no bytes, and requests.
fn unread(streams: u32) -> Vec<u8> {
    let literal = |index: &[u8], text: &str| {
        let length = u8::try_from(text.len()).unwrap();
        [index, &[length], text.as_bytes()].concat()
    };
    let head = [
        // GET, http
        vec![0x82, 0x86],
        literal(&[0x04], LINES),
        // :authority, accept-encoding
        literal(&[0x01], "a"),
        literal(&[0x0f, 0x01], "zstd"),
    ]
    .concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    for number in 0..streams {
        bytes.extend(frame(1, 5, 2 * number + 1, &head));
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_take_bounded_memory_and_others_are_served() {
    let site = Site::start("answerBytes: 32MiB");
    let before = site.peak();
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(site.ask(100).await);
    }
    until("answers wait", async || {
        site.metric("catalog_mirror_answers_refused_total").await > 1000
    })
    .await;
    for _ in 0..20 {
        assert!(site.taken().await <= 32 << 20);
        assert_eq!(site.server.status(LINES).await, 200);
    }
    // Two thousand encoders would take a gigabyte.
    let took = site.peak() - before;
    assert!(took < 64, "{took} MB");
    drop(held);
    until("the memory is given back", async || site.taken().await == 0).await;
    assert_eq!(site.server.status(LINES).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_without_memory_is_refused_after_its_wait() {
    // Enough for one encoder.
    let site = Site::start("answerBytes: 9MiB, answerWait: 300ms");
    let held = site.ask(1).await;
    until("the answer is made", async || site.taken().await > 0).await;
    let refused = site.get_lines().await;
    assert_eq!(refused.status(), 503);
    assert_eq!(field(&refused, "retry-after"), "5");
    assert!(refused.text().await.unwrap().contains("too-many-answers"));
    assert_eq!(site.metric("catalog_mirror_answers_refused_total").await, 1);
    // Probes and small answers need none.
    assert_eq!(site.server.status("/healthz").await, 200);
    assert_eq!(site.server.status("/catalogs/demo/content-hash").await, 200);
    drop(held);
    until("the memory is given back", async || site.taken().await == 0).await;
}

/// A client that takes a byte now and then is no client that reads.
#[tokio::test(flavor = "multi_thread")]
async fn client_that_takes_single_bytes_is_closed_while_others_wait() {
    let site = Site::start("answerBytes: 9MiB");
    let mut held = site.ask(1).await;
    let drip = tokio::spawn(async move {
        // One byte more for the first stream, until the server closes the connection.
        while held.write_all(&frame(8, 0, 1, &[0, 0, 0, 1])).await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    });
    until("the answer is made", async || site.taken().await > 0).await;
    // It lasts, because nothing waits.
    sleep(Duration::from_secs(4)).await;
    assert!(!drip.is_finished());
    let waited = site.get_lines().await;
    assert_eq!(waited.status(), 200);
    drip.await.unwrap();
    let closed = "catalog_mirror_connections_closed_total{reason=\"stalled\"}";
    assert_eq!(site.metric(closed).await, 1);
    assert_eq!(site.metric("catalog_mirror_answers_refused_total").await, 0);
}
