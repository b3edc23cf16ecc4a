//! Bodies of the wrong length and pace, sent by a CDN that the registry leads to.

use std::time::Duration;

use testkit::{Fault, Kind, Say, Wire, gzip};

use super::{Lab, Row, SOON, expect_of_cdn};
use crate::kit::small;

/// Maximum number of bytes that are taken in all attempts.
const MOST: usize = 40 << 20;

fn head(lines: &str) -> Say {
    Say::Bytes(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes())
}

fn of_length(length: impl std::fmt::Display) -> Say {
    head(&format!("Content-Length: {length}\r\n"))
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// The bytes of the layer of the image.
fn layer() -> Vec<u8> {
    let image = small();
    image.blobs[&image.layers[0]].to_vec()
}

#[tokio::test]
async fn layer_of_wrong_length_or_pace_is_refused() {
    let layer = layer();
    let length = layer.len();
    let (raw, all) = (
        |bytes: &[u8]| Say::Bytes(bytes.to_vec()),
        || Say::Bytes(layer.clone()),
    );
    let (none, right) = (|| head(""), || of_length(length));
    let chunked = || head("Transfer-Encoding: chunked\r\n");
    let (one, end) = (|| raw(&chunk(&layer)), || raw(b"0\r\n\r\n"));
    let trailers = || vec![chunked(), one(), raw(b"0\r\n")];
    let single = Say::Bytes(layer.iter().flat_map(|byte| chunk(&[*byte])).collect());
    let short = raw(&chunk(&layer[1..]));
    let drip = |ms| Say::Drip(layer.clone(), Duration::from_millis(ms));
    let minute = || Say::Wait(Duration::from_secs(60));
    let endless = |bytes: &[u8]| Say::Again(bytes.to_vec(), 1600);
    let zeros = vec![0; 1 << 16];
    let two = head("Content-Length: 5\r\nContent-Length: 6\r\n");
    let squeezed = gzip(&layer);
    let coded = format!(
        "Content-Encoding: gzip\r\nContent-Length: {}\r\n",
        squeezed.len()
    );
    // RFC 9112, section 7.1: a chunk begins with its size, and may have extensions.
    let huge = raw(b"fffffffffffffffff\r\n");
    let (begin, more) = (raw(b"5;x="), endless(&[b'a'; 1 << 16]));
    let flood = endless(&b"x-a: b\r\n".repeat(1 << 13));
    let rows: Vec<Row<'_>> = vec![
        ("the right length", vec![right(), all()], "read"),
        ("no length", vec![none(), all()], "read"),
        ("chunks", vec![chunked(), one(), end()], "read"),
        ("chunks of one byte", vec![chunked(), single, end()], "read"),
        ("single bytes, but fast", vec![right(), drip(1)], "read"),
        (
            "a length too short",
            vec![of_length(length - 1), all()],
            "truncated",
        ),
        (
            "no length, a byte less",
            vec![none(), raw(&layer[1..])],
            "truncated",
        ),
        (
            "short chunks",
            vec![chunked(), short, end()],
            "digest or truncated",
        ),
        (
            "a length too long",
            vec![of_length(length + 1), all()],
            "size",
        ),
        (
            "beyond all layers",
            vec![of_length(1_u64 << 60), all()],
            "size",
        ),
        (
            "beyond numbers",
            vec![of_length("9".repeat(40)), all()],
            "broken",
        ),
        (
            "a length that is none",
            vec![of_length("many"), all()],
            "broken",
        ),
        ("a negative length", vec![of_length(-5), all()], "broken"),
        ("two lengths", vec![two, all()], "broken"),
        (
            "no length, a byte more",
            vec![none(), all(), raw(b"x")],
            "size",
        ),
        (
            "no length, and no end",
            vec![none(), endless(&zeros)],
            "size",
        ),
        (
            "chunks without end",
            vec![chunked(), endless(&chunk(&zeros))],
            "size",
        ),
        (
            "chunks of nonsense",
            vec![chunked(), raw(b"zz\r\n")],
            "broken",
        ),
        ("a chunk beyond numbers", vec![chunked(), huge], "broken"),
        ("an extension", vec![chunked(), begin, more], "broken"),
        (
            "trailers without end",
            [trailers(), vec![flood]].concat(),
            "broken",
        ),
        (
            "silence in trailers",
            [trailers(), vec![minute()]].concat(),
            "timeout",
        ),
        (
            "an end in the middle",
            vec![right(), raw(&layer[..10])],
            "broken",
        ),
        ("nothing at all", vec![], "broken"),
        (
            "silence",
            vec![right(), raw(&layer[..10]), minute()],
            "timeout",
        ),
        ("silence from the start", vec![minute()], "timeout"),
        ("drops", vec![right(), drip(40)], "too slow"),
        (
            "compressed, as it says",
            vec![head(&coded), raw(&squeezed)],
            "coding",
        ),
        ("zeros", vec![right(), raw(&vec![0; length])], "digest"),
    ];
    for row in rows {
        expect_of_cdn(Kind::Blob, row, MOST, |_| {}).await;
    }
}

/// The second request, for nothing more, is answered by the registry.
#[tokio::test]
async fn layer_that_breaks_after_its_last_byte_is_read() {
    let start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let wire = Wire::answering([start, &*chunk(&layer()), b"0\r\nx-a: b"].concat()).await;
    let lab = Lab::new().await;
    let cdn = Fault::Redirect(format!("http://{}/", wire.host()));
    lab.script([(Kind::Blob, Fault::Pass), (Kind::Blob, cdn)]);
    lab.expect("all bytes came before", "read").await;
}

#[tokio::test]
async fn slow_pull_ends_at_pull_timeout_or_registry_wait() {
    let short = Duration::from_millis(700);
    for (wait, pull, want) in [
        (None, short, "took too long"),
        (Some(short), SOON, "waited too long"),
    ] {
        let drip = Say::Drip(layer(), Duration::from_millis(40));
        let says = vec![of_length(layer().len()), drip];
        expect_of_cdn(
            Kind::Blob,
            ("a steady drip", says, want),
            MOST,
            |settings| {
                settings.registry_wait = wait;
                settings.pull_timeout = pull;
                settings.http.min_throughput.bytes = 1;
            },
        )
        .await;
    }
}

#[tokio::test]
async fn small_answer_is_limited_in_bytes_and_time() {
    let page = || Say::Again(vec![b'x'; 1 << 16], 1600);
    let drip = Say::Drip(vec![b'x'; 1 << 16], Duration::from_millis(2));
    let minute = Say::Wait(Duration::from_secs(60));
    for row in [
        ("without end", vec![head(""), page()], "limit manifestBytes"),
        (
            "too long",
            vec![of_length(1_u64 << 60), page()],
            "limit manifestBytes",
        ),
        ("drops", vec![head(""), drip], "took too long"),
        ("never begins", vec![minute], "timeout"),
    ] {
        let is_long = row.2 == "took too long";
        expect_of_cdn(Kind::Manifest, row, 32 << 20, |settings| {
            if is_long {
                settings.pull_timeout = Duration::from_millis(700);
            }
        })
        .await;
    }
}
