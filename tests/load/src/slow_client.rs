//! Clients that read slowly or close the connection in the middle of an answer.

use std::time::Duration;

use bytes::BytesMut;
use http::header::ACCEPT_ENCODING;
use http_body_util::BodyExt;
use tokio::time::sleep;

use crate::answer::Answer;
use crate::client::{CheckedRequest, Client};
use crate::connection::RequestSpec;
use crate::expectation::Expectation;
use crate::violation::Violation;

/// Pause between two parts of the body: reading a catalog takes seconds.
const PAUSE: Duration = Duration::from_millis(40);

/// Behaviour of a slow client.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SlowBehaviour {
    /// Reads the answer to its end, slowly.
    Slow,
    /// Closes the connection in the middle of the answer.
    HangUp,
}

impl Client {
    /// Reads the whole catalog slowly and checks the answer: it must be complete and correct.
    pub(crate) async fn slowly(&mut self, catalog: &str) -> Result<(), Violation> {
        let path = format!("/catalogs/{catalog}/api/v1/all");
        let wanted = CheckedRequest::new("(slow readers)", path, Expectation::Content);
        let (head, mut rest) = self.open(wanted.route, &wanted.ask()).await?.into_parts();
        let mut body = BytesMut::new();
        while let Some(frame) = rest.frame().await {
            body.extend(frame?.into_data().ok());
            sleep(PAUSE).await;
        }
        let bytes = body.len() as u64;
        self.shared
            .statistics
            .with(wanted.route, |row| row.bytes += bytes);
        let answer = Answer::new(&wanted.ask(), head, body.freeze())?;
        self.check(&wanted, answer).map(drop)
    }

    /// Reads the first part of the whole catalog.
    pub(crate) async fn partly(&mut self, catalog: &str) -> Result<(), Violation> {
        let coding = ["gzip", "zstd", "identity"][rand::random_range(0..3)];
        let ask = RequestSpec::get(&format!("/catalogs/{catalog}/api/v1/all"))
            .with(ACCEPT_ENCODING, coding);
        let mut response = self.open("(hang up)", &ask).await?;
        if let Some(frame) = response.body_mut().frame().await {
            frame?;
        }
        drop(response);
        self.connection.hang_up();
        self.shared
            .statistics
            .with("(hang up)", |row| row.other += 1);
        Ok(())
    }
}
