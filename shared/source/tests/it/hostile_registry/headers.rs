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

#[tokio::test]
async fn flood_of_headers_is_limited_in_bytes_and_time() {
    let start = || bytes("HTTP/1.1 200 OK\r\n");
    let slow = Duration::from_millis(20);
    let rows: Vec<(&str, Vec<Say>, &str)> = vec![
        (
            "headers without end",
            vec![start(), megabytes("x-a: b\r\n", 100)],
            "broken",
        ),
        (
            "one header of 100 MB",
            vec![start(), bytes("x-a: "), megabytes("b", 100)],
            "broken",
        ),
        ("a name of 100 MB", vec![start(), megabytes("b", 100)], "broken"),
        (
            "a status line of 100 MB",
            vec![bytes("HTTP/1.1 200 "), megabytes("O", 100)],
            "broken",
        ),
        (
            "headers that drip",
            vec![start(), Say::Drip(b"x-a: b\r\n".repeat(500), slow)],
            "silence",
        ),
        (
            "interim answers, which end with the time for an answer",
            vec![
                megabytes("HTTP/1.1 100 Continue\r\n\r\n", 5),
                Say::Wait(Duration::from_secs(60)),
            ],
            "silence",
        ),
        ("not HTTP", vec![bytes("SSH-2.0-OpenSSH_9.9\r\n")], "broken"),
        ("the HTTP of long ago", vec![bytes("<html>hello</html>")], "broken"),
        ("a header with a NUL", vec![start(), bytes("x-a: \0\r\n\r\n")], "broken"),
        (
            "a header with a lone CR",
            vec![start(), bytes("x-a: b\rx-c: d\r\n\r\n")],
            "broken",
        ),
        (
            "a folded header",
            vec![start(), bytes("x-a: b\r\n c\r\n\r\n")],
            "broken",
        ),
        (
            "a status beyond all",
            vec![bytes("HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n")],
            "status",
        ),
        (
            "a switch of protocols",
            vec![bytes(
                "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            )],
            "broken or status",
        ),
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
        assert!(
            wire.bytes_said() < 8 << 20,
            "{name}: {} bytes were taken",
            wire.bytes_said()
        );
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
