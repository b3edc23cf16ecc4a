//! The command `demo`, which a newcomer runs first.

use crate::support::{
    binary::{Server, command},
    work::Work,
};

#[tokio::test(flavor = "multi_thread")]
async fn demo_publishes_serves_and_updates() {
    let server = Server::of(command(["demo", "--update-after", "3s"]));
    let first = server.text("/catalogs/demo/content-hash").await;
    server.says("Ask again");
    assert_ne!(server.text("/catalogs/demo/content-hash").await, first);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn demo_once_ends_by_itself() {
    Work::new().plays(
        "0 demo --once --update-after 0s --listen 127.0.0.1:0
         > published
         > unchanged
         > curl -s
         > +1 -1 ~1",
    );
}
