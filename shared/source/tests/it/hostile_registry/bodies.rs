//! Bodies of the wrong length and pace, sent by a CDN that the registry leads to.

use std::time::Duration;

use catalog_mirror_source::SourceSettings;
use testkit::{Fault, Kind, Say, Wire, gzip};

use super::{Lab, wanting};

/// Longer than any row takes.
const SOON: Duration = Duration::from_secs(10);

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
    let start = |end: usize| Say::Bytes(layer[..end].to_vec());
    let drip = |pace| Say::Drip(layer.clone(), pace);
    let minute = || Say::Wait(Duration::from_secs(60));
    let zeros = vec![0; 1 << 16];
    let endless = |bytes: &[u8]| Say::Again(bytes.to_vec(), 1600);
    let single = Say::Bytes(layer.iter().flat_map(|byte| chunk(&[*byte])).collect());
    let raw = |bytes: &[u8]| Say::Bytes(bytes.to_vec());
    let twice = "Content-Length: 5\r\nContent-Length: 6\r\n";
    let coded = format!("Content-Encoding: gzip\r\nContent-Length: {}\r\n", squeezed.len());
    let rows: Vec<(&str, Vec<Say>, &str)> = vec![
        ("the right length", vec![of_length(length), all()], "read"),
        ("no length", vec![head(""), all()], "read"),
        ("chunks", vec![chunked(), one(), end()], "read"),
        ("chunks of one byte", vec![chunked(), single, end()], "read"),
        ("single bytes, but fast", vec![of_length(length), drip(fast)], "read"),
        ("a length too short", vec![of_length(length - 1), all()], "truncated"),
        (
            "no length, and too short",
            vec![head(""), start(length - 1)],
            "truncated",
        ),
        (
            "short chunks",
            vec![chunked(), raw(&chunk(&layer[1..])), end()],
            "digest or truncated",
        ),
        ("a length too long", vec![of_length(length + 1), all()], "size"),
        (
            "a length beyond all layers",
            vec![of_length(1_u64 << 60), all()],
            "size",
        ),
        (
            "a length beyond numbers",
            vec![of_length("9".repeat(40)), all()],
            "broken",
        ),
        ("a length that is none", vec![of_length("many"), all()], "broken"),
        ("a negative length", vec![of_length(-5), all()], "broken"),
        ("two lengths", vec![head(twice), all()], "broken"),
        ("no length, and too long", vec![head(""), all(), raw(b"x")], "size"),
        ("no length, and no end", vec![head(""), endless(&zeros)], "size"),
        ("chunks without end", vec![chunked(), endless(&chunk(&zeros))], "size"),
        ("chunks of nonsense", vec![chunked(), raw(b"zz\r\n")], "broken"),
        (
            "a chunk beyond numbers",
            vec![chunked(), raw(b"fffffffffffffffff\r\n")],
            "broken",
        ),
        (
            "an extension",
            vec![chunked(), raw(b"5;x="), endless(&[b'a'; 1 << 16])],
            "broken",
        ),
        ("an end in the middle", vec![of_length(length), start(10)], "broken"),
        ("nothing at all", vec![], "broken"),
        (
            "silence in the middle",
            vec![of_length(length), start(10), minute()],
            "timeout",
        ),
        ("silence from the start", vec![minute()], "timeout"),
        (
            "drops",
            vec![of_length(length), drip(Duration::from_millis(40))],
            "too slow",
        ),
        ("compressed, as it says", vec![head(&coded), raw(&squeezed)], "coding"),
        ("zeros", vec![of_length(length), raw(&vec![0; length])], "digest"),
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
        assert!(started.elapsed() < SOON, "{name}");
        let said = wire.bytes_said();
        assert!(said < 40 << 20, "{name}: {said} bytes were taken");
        let mut asked = wire.requests().into_iter();
        assert!(
            asked.all(|text| !text.to_lowercase().contains("authorization")),
            "{name}"
        );
    }
}

#[tokio::test]
async fn slow_pull_ends_at_pull_timeout_or_registry_wait() {
    let image = crate::kit::small();
    let layer = image.blobs[&image.layers[0]].to_vec();
    let short = Duration::from_millis(700);
    for (wait, pull, want) in [(None, short, "took too long"), (Some(short), SOON, "waited too long")] {
        let drip = Say::Drip(layer.clone(), Duration::from_millis(40));
        let wire = Wire::start(vec![of_length(layer.len()), drip]).await;
        let lab = lab_but(&wire, |settings| {
            settings.registry_wait = wait;
            settings.pull_timeout = pull;
            settings.http.min_throughput.bytes = 1;
        });
        lab.await.expect("a steady drip", want).await;
    }
}

#[tokio::test]
async fn small_answer_is_limited_in_bytes_and_time() {
    let page = || Say::Again(vec![b'x'; 1 << 16], 1600);
    let drip = Say::Drip(vec![b'x'; 1 << 16], Duration::from_millis(2));
    let minute = Say::Wait(Duration::from_secs(60));
    let long = of_length(1_u64 << 60);
    let rows = [
        ("without end", vec![head(""), page()], "limit manifestBytes"),
        ("too long", vec![long, page()], "limit manifestBytes"),
        ("drops", vec![head(""), drip], "took too long"),
        ("never begins", vec![minute], "timeout"),
    ];
    for (name, says, want) in rows {
        let wire = Wire::start(says).await;
        let lab = Lab::with(wanting(), |settings| {
            if want == "took too long" {
                settings.resolve_timeout = Duration::from_millis(700);
            }
        })
        .await;
        lab.warm().await;
        lab.registry.script(Kind::Head, Fault::Status(405, None));
        let url = format!("http://{}/manifest", wire.host());
        (0..12).for_each(|_| lab.registry.script(Kind::Manifest, Fault::Redirect(url.clone())));
        lab.expect(name, want).await;
        let said = wire.bytes_said();
        assert!(said < 32 << 20, "{name}: {said} bytes were taken");
    }
}
