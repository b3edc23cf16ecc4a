//! Clients that do not take an answer as it comes.

use std::time::Duration;

use bytes::BytesMut;
use http::header::ACCEPT_ENCODING;
use http_body_util::BodyExt;
use tokio::time::sleep;

use crate::{
    client::Ask,
    promise::Promise,
    visitor::{Visitor, Wanted},
    wrong::Wrong,
};

/// Between two pieces: a catalog takes seconds.
const PAUSE: Duration = Duration::from_millis(40);

/// How an answer is treated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Read to its end, slowly.
    Slow,
    /// Left in the middle, with the connection.
    HangsUp,
}

impl Visitor {
    /// The whole catalog, taken in that manner.
    pub(crate) async fn rudely(&mut self, manner: Manner) -> Result<(), Wrong> {
        let names = self.shared.world.names();
        let Some(catalog) = names.get(rand::random_range(0..names.len().max(1))) else {
            return Ok(());
        };
        let path = format!("/catalogs/{catalog}/api/v1/all");
        match manner {
            Manner::Slow => self.slowly(path).await,
            Manner::HangsUp => self.partly(&path).await,
        }
    }

    /// What comes late has to be right, too.
    async fn slowly(&mut self, path: String) -> Result<(), Wrong> {
        let wanted = Wanted::new("(slow readers)", path, Promise::Content);
        let (head, mut rest) = self.open(wanted.route, &Ask::get(&wanted.path)).await?.into_parts();
        let mut body = BytesMut::new();
        while let Some(frame) = rest.frame().await {
            body.extend(frame?.into_data().ok());
            sleep(PAUSE).await;
        }
        self.judge(&wanted, head, body.freeze()).map(drop)
    }

    async fn partly(&mut self, path: &str) -> Result<(), Wrong> {
        let coding = ["gzip", "zstd", "identity"][rand::random_range(0..3)];
        let ask = Ask::get(path).with(ACCEPT_ENCODING, coding);
        let mut response = self.open("(hang up)", &ask).await?;
        if let Some(frame) = response.body_mut().frame().await {
            frame?;
        }
        drop(response);
        self.hang_up();
        self.shared.tally.with("(hang up)", |row| row.other += 1);
        Ok(())
    }
}
