//! Answers that never get to their body, or not out of it.

use std::time::{Duration, Instant};

use testkit::{Fault, Kind, Say, Wire};

use super::{Lab, verdict, wanting};

fn bytes(text: &str) -> Say {
    Say::Bytes(text.as_bytes().to_vec())
}

fn megabytes(text: &str, count: usize) -> Say {
    let piece = text.repeat((1 << 16) / text.len() + 1);
    Say::Again(piece.into_bytes(), count * 16)
}

const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const BEYOND: &str = "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";

#[tokio::test]
async fn flood_of_headers_is_limited_in_bytes_and_time() {
    let start = || bytes("HTTP/1.1 200 OK\r\n");
    let slow = Duration::from_millis(20);
    let minute = Duration::from_secs(60);
    let flood = |begin: &str, text: &str| vec![bytes(begin), megabytes(text, 100)];
    let header = |text: &str| vec![bytes(&format!("HTTP/1.1 200 OK\r\n{text}\r\n\r\n"))];
    let rows: Vec<(&str, Vec<Say>, &str)> = vec![
        ("endless headers", flood("HTTP/1.1 200 OK\r\n", "x-a: b\r\n"), "broken"),
        ("one endless header", flood("HTTP/1.1 200 OK\r\nx-a: ", "b"), "broken"),
        ("an endless name", flood("HTTP/1.1 200 OK\r\n", "b"), "broken"),
        ("an endless status line", flood("HTTP/1.1 200 ", "O"), "broken"),
        (
            "drops",
            vec![start(), Say::Drip(b"x-a: b\r\n".repeat(500), slow)],
            "timeout",
        ),
        // They end with the time for an answer.
        (
            "interim answers",
            vec![megabytes(INTERIM, 5), Say::Wait(minute)],
            "timeout",
        ),
        ("not HTTP", vec![bytes("SSH-2.0-OpenSSH_9.9\r\n")], "broken"),
        ("the HTTP of long ago", vec![bytes("<html>hello</html>")], "broken"),
        ("a header with a NUL", header("x-a: \0"), "broken"),
        ("a header with a lone CR", header("x-a: b\rx-c: d"), "broken"),
        ("a folded header", header("x-a: b\r\n c"), "broken"),
        ("a status beyond all", vec![bytes(BEYOND)], "status"),
        ("a switch of protocols", vec![bytes(SWITCH)], "broken or status"),
    ];
    for (name, says, want) in rows {
        let wire = Wire::start(says).await;
        // One attempt: `storms` has the number of attempts, and five take the time of a busy machine.
        let lab = Lab::with(wanting(), |settings| settings.http.retry.attempts = Some(1)).await;
        lab.warm().await;
        let url = format!("http://{}/manifest", wire.host());
        lab.registry.script(Kind::Manifest, Fault::Redirect(url));
        let started = Instant::now();
        let found = verdict(&lab.pull().await);
        assert!(want.split(" or ").any(|want| want == found), "{name}: {found}");
        assert!(started.elapsed() < Duration::from_secs(10), "{name}");
        let said = wire.bytes_said();
        assert!(said < 8 << 20, "{name}: {said} bytes were taken");
    }
}

#[tokio::test]
async fn endless_trailers_after_verified_body_are_ignored() {
    let image = crate::kit::small();
    let layer = &image.blobs[&image.layers[0]];
    let start = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        layer.len()
    );
    let whole = [start.as_bytes(), layer, b"\r\n0\r\n"].concat();
    for end in [megabytes("x-a: b\r\n", 100), Say::Wait(Duration::from_secs(60))] {
        let wire = Wire::start(vec![Say::Bytes(whole.clone()), end]).await;
        let lab = Lab::new().await;
        lab.script([
            (Kind::Blob, Fault::Pass),
            (Kind::Blob, Fault::Redirect(format!("http://{}/", wire.host()))),
        ]);
        lab.expect("all bytes came before", "read").await;
        assert!(wire.bytes_said() < 40 << 20, "{} bytes were taken", wire.bytes_said());
    }
}
