//! Bodies at and above the largest answer.

use std::{fs, sync::Arc};

use api::{BaseUrl, HttpSettings, LargeBodies};
use lambda_http::http::Method;
use reader_function::{INLINE_MAX, PAYLOAD_MAX};
use storekit::MemoryStore;

use crate::mirror::{Answer, event, mirror, payload};

const ALL: &str = "/catalogs/demo/api/v1/all";

fn settings() -> HttpSettings {
    HttpSettings {
        large: Some(LargeBodies {
            above: INLINE_MAX,
            max: INLINE_MAX,
            to: Arc::new("https://cdn.example".parse::<BaseUrl>().unwrap()),
        }),
        ..HttpSettings::default()
    }
}

/// Returns the size of the payload and the answer to a GET of the whole catalog.
async fn get(store: &MemoryStore, fields: &[(&str, &str)]) -> (usize, Answer) {
    let payload = payload(store, settings(), &event(&Method::GET, ALL, fields)).await;
    (payload.len(), Answer::read(&payload))
}

/// A catalog of so many bytes, of which nearly all are quotes and the backslashes before them: as a
/// JSON string it would have twice its size.
async fn quotes(size: u64) -> MemoryStore {
    let (begin, end) = (r#"{"name":"q","schema":"olm.package","text":""#, "\"}\n");
    let text = usize::try_from(size).unwrap() - begin.len() - end.len();
    let line = format!(
        "{begin}{}{}{end}",
        "\\\"".repeat(text / 2),
        &"x"[..text % 2]
    );
    assert_eq!(line.len() as u64, size);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalog.json"), line).unwrap();
    mirror(folder.path()).await
}

#[tokio::test]
async fn largest_body_fits_with_any_content() {
    let store = quotes(INLINE_MAX).await;
    let (length, answer) = get(&store, &[]).await;
    assert!(length as u64 <= PAYLOAD_MAX, "{length}");
    assert_eq!((answer.status, answer.body.len() as u64), (200, INLINE_MAX));
}

#[tokio::test]
async fn body_above_the_limit_is_redirected() {
    let store = quotes(INLINE_MAX + 1).await;
    let (_, answer) = get(&store, &[]).await;
    assert_eq!((answer.status, answer.body.len()), (307, 0));
    let location = &answer.headers["location"];
    let is_object =
        location.starts_with("https://cdn.example/all/sha256/") && location.ends_with(".json");
    assert!(is_object, "{location}");
    let (_, answer) = get(&store, &[("accept-encoding", "gzip")]).await;
    assert_eq!(
        (answer.status, &*answer.headers["content-encoding"]),
        (200, "gzip")
    );
}

/// A range may begin inside a character, which text would alter.
#[tokio::test]
async fn bytes_are_not_altered() {
    let folder = tempfile::tempdir().unwrap();
    let line = "{\"name\":\"ü\",\"schema\":\"olm.package\"}\n";
    fs::write(folder.path().join("catalog.json"), line).unwrap();
    let store = mirror(folder.path()).await;
    let at = line.find('ü').unwrap() + 1;
    let range = format!("bytes={at}-{at}");
    let (_, answer) = get(&store, &[("range", &range)]).await;
    assert_eq!(
        (answer.status, &answer.body[..]),
        (206, &line.as_bytes()[at..=at])
    );
}
