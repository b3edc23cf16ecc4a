//! Bodies of the wrong length and pace, sent by a CDN that the registry leads to.

use std::time::Duration;

use catalog_mirror_source::SourceSettings;
use testkit::{Fault, Kind, Say, Wire, gzip};

use super::{Lab, wanting};

fn head(lines: &str) -> Say {
    Say::Bytes(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes())
}

fn of_length(length: impl std::fmt::Display) -> Say {
    head(&format!("Content-Length: {length}\r\n"))
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A lab whose layers come from the wire, however often they are asked for.
async fn lab(wire: &Wire) -> Lab {
    lab_but(wire, |_| {}).await
}

async fn lab_but(wire: &Wire, change: impl Fn(&mut SourceSettings)) -> Lab {
    let lab = Lab::with(wanting(), change).await;
    lab.warm().await;
    lab.registry.script(Kind::Blob, Fault::Pass);
    let url = format!("http://{}/layer", wire.host());
    (0..12).for_each(|_| lab.registry.script(Kind::Blob, Fault::Redirect(url.clone())));
    lab
}

#[tokio::test]
async fn layer_of_wrong_length_or_pace_is_refused() {
    let image = crate::kit::small();
    let layer = image.blobs[&image.layers[0]].to_vec();
    let (length, all) = (layer.len(), || Say::Bytes(layer.clone()));
    let chunked = || head("Transfer-Encoding: chunked\r\n");
    let one = || Say::Bytes(chunk(&layer));
    let end = || Say::Bytes(b"0\r\n\r\n".to_vec());
    let squeezed = gzip(&layer);
    let fast = Duration::from_millis(1);
    let rows: Vec<(&str, Vec<Say>, &str)> = vec![
        ("the right length", vec![of_length(length), all()], "read"),
        ("no length", vec![head(""), all()], "read"),
        ("chunks", vec![chunked(), one(), end()], "read"),
        (
            "chunks of one byte",
            vec![
                chunked(),
                Say::Bytes(layer.iter().flat_map(|byte| chunk(&[*byte])).collect()),
                end(),
            ],
            "read",
        ),
        (
            "one byte at a time, but fast",
            vec![of_length(length), Say::Drip(layer.clone(), fast)],
            "read",
        ),
        ("a length too short", vec![of_length(length - 1), all()], "cut"),
        (
            "no length, and too short",
            vec![head(""), Say::Bytes(layer[..length - 1].to_vec())],
            "cut",
        ),
        (
            "chunks, and too short",
            vec![chunked(), Say::Bytes(chunk(&layer[1..])), end()],
            "digest or cut",
        ),
        ("a length too long", vec![of_length(length + 1), all()], "size"),
        (
            "a length beyond all layers",
            vec![of_length(1_u64 << 60), all()],
            "size",
        ),
        (
            "a length beyond all numbers",
            vec![of_length("9".repeat(40)), all()],
            "broken",
        ),
        ("a length that is none", vec![of_length("many"), all()], "broken"),
        ("a negative length", vec![of_length(-5), all()], "broken"),
        (
            "two lengths",
            vec![head("Content-Length: 5\r\nContent-Length: 6\r\n"), all()],
            "broken",
        ),
        (
            "no length, and too long",
            vec![head(""), all(), Say::Bytes(b"x".to_vec())],
            "size",
        ),
        (
            "no length, and no end",
            vec![head(""), Say::Again(vec![0; 1 << 16], 1600)],
            "size",
        ),
        (
            "chunks without end",
            vec![chunked(), Say::Again(chunk(&[0; 1 << 16]), 1600)],
            "size",
        ),
        (
            "chunks of nonsense",
            vec![chunked(), Say::Bytes(b"zz\r\n".to_vec())],
            "broken",
        ),
        (
            "a chunk beyond all numbers",
            vec![chunked(), Say::Bytes(b"fffffffffffffffff\r\n".to_vec())],
            "broken",
        ),
        (
            "a chunk with an extension without end",
            vec![
                chunked(),
                Say::Bytes(b"5;x=".to_vec()),
                Say::Again(vec![b'a'; 1 << 16], 1600),
            ],
            "broken",
        ),
        (
            "an end in the middle",
            vec![of_length(length), Say::Bytes(layer[..10].to_vec())],
            "broken",
        ),
        ("nothing at all", vec![], "broken"),
        (
            "silence in the middle",
            vec![
                of_length(length),
                Say::Bytes(layer[..10].to_vec()),
                Say::Wait(Duration::from_secs(60)),
            ],
            "silence",
        ),
        (
            "silence from the start",
            vec![Say::Wait(Duration::from_secs(60))],
            "silence",
        ),
        (
            "drops",
            vec![of_length(length), Say::Drip(layer.clone(), Duration::from_millis(40))],
            "slow",
        ),
        (
            "compressed once more, as it says",
            vec![
                head(&format!(
                    "Content-Encoding: gzip\r\nContent-Length: {}\r\n",
                    squeezed.len()
                )),
                Say::Bytes(squeezed.clone()),
            ],
            "coding",
        ),
        (
            "zeros of the right length",
            vec![of_length(length), Say::Bytes(vec![0; length])],
            "digest",
        ),
    ];
    for (name, says, want) in rows {
        let wire = Wire::start(says).await;
        let lab = lab(&wire).await;
        let started = std::time::Instant::now();
        let result = lab.pull().await;
        let found = super::verdict(&result);
        assert!(
            want.split(" or ").any(|want| want == found),
            "{name}: {found}, {:?}",
            result.err()
        );
        assert!(started.elapsed() < Duration::from_secs(10), "{name}");
        assert!(
            wire.bytes_said() < 40 << 20,
            "{name}: {} bytes were taken",
            wire.bytes_said()
        );
        assert!(
            wire.requests()
                .iter()
                .all(|said| !said.to_lowercase().contains("authorization")),
            "{name}"
        );
    }
}

#[tokio::test]
async fn slow_pull_ends_at_pull_timeout() {
    let image = crate::kit::small();
    let layer = image.blobs[&image.layers[0]].to_vec();
    let drip = Say::Drip(layer.clone(), Duration::from_millis(40));
    let wire = Wire::start(vec![of_length(layer.len()), drip]).await;
    let lab = lab_but(&wire, |settings| {
        settings.pull_timeout = Duration::from_millis(700);
        settings.http.min_throughput.bytes = 1;
    });
    let lab = lab.await;
    lab.expect("a steady drip", "took too long").await;
}

#[tokio::test]
async fn slow_pull_ends_at_registry_wait() {
    let image = crate::kit::small();
    let layer = image.blobs[&image.layers[0]].to_vec();
    let drip = Say::Drip(layer.clone(), Duration::from_millis(40));
    let wire = Wire::start(vec![of_length(layer.len()), drip]).await;
    let lab = lab_but(&wire, |settings| {
        settings.registry_wait = Some(Duration::from_millis(700));
        settings.http.min_throughput.bytes = 1;
    });
    let lab = lab.await;
    lab.expect("a steady drip", "waited too long").await;
}

#[tokio::test]
async fn small_answer_is_limited_in_bytes_and_time() {
    let page = || Say::Again(vec![b'x'; 1 << 16], 1600);
    let drip = Say::Drip(vec![b'x'; 1 << 16], Duration::from_millis(2));
    let short = |settings: &mut SourceSettings| settings.resolve_timeout = Duration::from_millis(700);
    type Change = fn(&mut SourceSettings);
    let rows: [(&str, Vec<Say>, &str, Change); 4] = [
        (
            "a manifest without end",
            vec![head(""), page()],
            "limit manifestBytes",
            |_| {},
        ),
        (
            "a manifest of a huge length",
            vec![of_length(1_u64 << 60), page()],
            "limit manifestBytes",
            |_| {},
        ),
        ("a manifest that drips", vec![head(""), drip], "took too long", short),
        (
            "a manifest that never begins",
            vec![Say::Wait(Duration::from_secs(60))],
            "silence",
            |_| {},
        ),
    ];
    for (name, says, want, change) in rows {
        let wire = Wire::start(says).await;
        let lab = Lab::with(wanting(), change).await;
        lab.warm().await;
        lab.registry.script(Kind::Head, Fault::Status(405, None));
        let url = format!("http://{}/manifest", wire.host());
        (0..12).for_each(|_| lab.registry.script(Kind::Manifest, Fault::Redirect(url.clone())));
        lab.expect(name, want).await;
        assert!(
            wire.bytes_said() < 32 << 20,
            "{name}: {} bytes were taken",
            wire.bytes_said()
        );
    }
}
