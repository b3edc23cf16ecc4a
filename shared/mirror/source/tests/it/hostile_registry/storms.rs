//! Registries that say "later", again and again.

use testkit::{Fault, Kind};

use super::Lab;

/// Maximum number of attempts for one request.
const ATTEMPTS: usize = 5;

/// `fetch` has the other statuses and values of `Retry-After`.
#[tokio::test]
async fn repeated_failures_end_after_five_attempts_or_at_once() {
    let far = "Fri, 31 Dec 9999 23:59:59 GMT";
    let rows: Vec<(u16, Option<&str>, &str, usize)> = vec![
        (429, None, "rate limited", ATTEMPTS),
        (429, Some("0"), "rate limited", ATTEMPTS),
        (429, Some("1000000000"), "rate limited", 1),
        (429, Some(far), "rate limited", 1),
        (503, Some("1000000000"), "unavailable", 1),
        (503, None, "unavailable", ATTEMPTS),
        (501, None, "read", 1),
        (505, None, "status", 1),
    ];
    for (status, after, want, attempts) in rows {
        let name = format!("{status} {after:?}");
        let lab = Lab::new().await;
        let later = Fault::Status(status, after.map(ToOwned::to_owned));
        lab.script((0..50).map(|_| (Kind::Head, later.clone())));
        lab.expect(&name, want).await;
        assert_eq!(lab.registry.count(Kind::Head), attempts, "{name}");
    }
}

#[tokio::test]
async fn repeated_failures_within_pull_end() {
    // Of blobs the config comes first, then the layer.
    for (kind, before) in [(Kind::Manifest, 0), (Kind::Blob, 0), (Kind::Blob, 1)] {
        for (status, want) in [(429, "rate limited"), (503, "unavailable")] {
            let lab = Lab::new().await;
            lab.script((0..before).map(|_| (kind, Fault::Pass)));
            lab.script((0..50).map(|_| (kind, Fault::Status(status, None))));
            lab.expect("a storm", want).await;
            assert_eq!(lab.registry.count(kind), before + ATTEMPTS);
        }
    }
}
