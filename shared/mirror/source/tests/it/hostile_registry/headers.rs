//! Answers that never get to their body.

use std::time::Duration;

use testkit::{Kind, Say};

use super::{Row, expect_of_cdn};

fn bytes(text: &str) -> Say {
    Say::Bytes(text.as_bytes().to_vec())
}

fn megabytes(text: &str, count: usize) -> Say {
    let piece = text.repeat((1 << 16) / text.len() + 1);
    Say::Again(piece.into_bytes(), count * 16)
}

const OK: &str = "HTTP/1.1 200 OK\r\n";
const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const BEYOND: &str = "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";

#[tokio::test]
async fn flood_of_headers_is_limited_in_bytes_and_time() {
    let flood = |begin: &str, text: &str| vec![bytes(begin), megabytes(text, 100)];
    let header = |text: &str| vec![bytes(&format!("{OK}{text}\r\n\r\n"))];
    let drip = Say::Drip(b"x-a: b\r\n".repeat(500), Duration::from_millis(20));
    let minute = Say::Wait(Duration::from_secs(60));
    let rows: Vec<Row<'_>> = vec![
        ("endless headers", flood(OK, "x-a: b\r\n"), "broken"),
        (
            "one endless header",
            flood("HTTP/1.1 200 OK\r\nx-a: ", "b"),
            "broken",
        ),
        ("an endless name", flood(OK, "b"), "broken"),
        (
            "an endless status line",
            flood("HTTP/1.1 200 ", "O"),
            "broken",
        ),
        ("drops", vec![bytes(OK), drip], "timeout"),
        // They end with the time for an answer.
        (
            "interim answers",
            vec![megabytes(INTERIM, 5), minute],
            "timeout",
        ),
        ("not HTTP", vec![bytes("SSH-2.0-OpenSSH_9.9\r\n")], "broken"),
        (
            "the HTTP of long ago",
            vec![bytes("<html>hello</html>")],
            "broken",
        ),
        ("a header with a NUL", header("x-a: \0"), "broken"),
        (
            "a header with a lone CR",
            header("x-a: b\rx-c: d"),
            "broken",
        ),
        ("a folded header", header("x-a: b\r\n c"), "broken"),
        ("a status beyond all", vec![bytes(BEYOND)], "status"),
        (
            "a switch of protocols",
            vec![bytes(SWITCH)],
            "broken or status",
        ),
    ];
    for row in rows {
        // One attempt: `storms` has the number of attempts, and five take the time of a busy
        // machine.
        expect_of_cdn(Kind::Manifest, row, 8 << 20, |settings| {
            settings.http.retry.attempts = Some(1);
        })
        .await;
    }
}
