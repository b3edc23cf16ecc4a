use std::{sync::Arc, time::Duration};

use http::StatusCode;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use model::Sha256;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::answer::Answer;
use crate::connection::{Connection, ConnectionOptions, RequestSpec};
use crate::expectation::{Expectation, VerifiedAnswer};
use crate::history::History;
use crate::slow_client::SlowBehaviour;
use crate::statistics::{Route, Statistics};
use crate::violation::{Violation, equal};

/// Values of `Accept-Encoding`.
const CODINGS: &[Option<&str>] = &[
    None,
    Some("gzip"),
    Some("zstd"),
    Some("identity"),
    Some("gzip, deflate, br"),
    Some("gzip;q=0.5, zstd"),
];

/// State that all clients share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) statistics: Statistics,
    pub(crate) history: History,
}

/// Client that sends one request after another at a fixed rate and checks every answer.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) connection: Connection,
    pace: Interval,
    last: (Route, String),
}

/// Request and the expected meaning of the answer's entity tag.
#[derive(Debug, Clone)]
pub(crate) struct CheckedRequest {
    pub(crate) route: Route,
    pub(crate) path: String,
    pub(crate) expectation: Expectation,
    /// Value of `Accept-Encoding`, if any.
    pub(crate) coding: Option<&'static str>,
}

impl CheckedRequest {
    pub(crate) const fn new(route: Route, path: String, expectation: Expectation) -> Self {
        Self {
            route,
            path,
            expectation,
            coding: None,
        }
    }

    /// Returns the request for a route of a catalog.
    pub(crate) fn of(route: Route, catalog: &str, expectation: Expectation) -> Self {
        Self::new(route, route.replace("{catalog}", catalog), expectation)
    }

    /// Accepts random codings, or none.
    pub(crate) fn coded(self) -> Self {
        let coding = CODINGS[rand::random_range(0..CODINGS.len())];
        Self { coding, ..self }
    }

    pub(crate) fn ask(&self) -> RequestSpec {
        let ask = RequestSpec::get(&self.path);
        match self.coding {
            Some(coding) => ask.with(ACCEPT_ENCODING, coding),
            None => ask,
        }
    }
}

impl Client {
    pub(crate) fn new(line: ConnectionOptions, every: Duration, shared: Arc<Shared>) -> Self {
        let mut pace = interval(every);
        // A client that had to wait does not catch up with a burst of requests.
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            connection: Connection::new(line),
            pace,
            last: ("", String::new()),
        }
    }

    /// Runs a random scenario on a random catalog, or reads it slowly. After a violation the
    /// connection is closed, because it may be unusable.
    pub(crate) async fn work(&mut self, slow: Option<SlowBehaviour>) {
        let names = self.shared.history.names();
        let catalog = &names[rand::random_range(0..names.len())];
        let done = match slow {
            None => self.run_scenario(catalog).await,
            Some(SlowBehaviour::Slow) => self.slowly(catalog).await,
            Some(SlowBehaviour::HangUp) => self.partly(catalog).await,
        };
        if let Err(violation) = done {
            let (route, what) = &self.last;
            self.shared.statistics.violation(route, what, &violation);
            self.connection.hang_up();
        }
    }

    pub(crate) async fn ask(
        &mut self,
        route: Route,
        ask: &RequestSpec,
    ) -> Result<Answer, Violation> {
        self.last = (
            route,
            format!("{} {} {:?}", ask.method, ask.path, ask.fields),
        );
        self.pace.tick().await;
        let begin = Instant::now();
        let answer = self.connection.ask(ask).await;
        self.shared
            .statistics
            .asked(route, begin.elapsed(), &answer);
        answer
    }

    /// Sends a GET request and checks the answer; sometimes sends another kind of request for the
    /// same target. Returns `None` for 404 and 410.
    pub(crate) async fn get(
        &mut self,
        wanted: &CheckedRequest,
    ) -> Result<Option<VerifiedAnswer>, Violation> {
        let answer = self.ask(wanted.route, &wanted.ask()).await?;
        if answer.is_gone() {
            return Ok(None);
        }
        let checked = self.check(wanted, answer)?;
        if !matches!(wanted.expectation, Expectation::Untagged) {
            Box::pin(self.recheck(wanted, &checked)).await?;
        }
        Ok(Some(checked))
    }

    /// Works like [`Self::get`], but 404 is a violation.
    pub(crate) async fn must_get(
        &mut self,
        wanted: &CheckedRequest,
    ) -> Result<VerifiedAnswer, Violation> {
        let found = self.get(wanted).await?;
        found.ok_or_else(|| Violation::Missing(wanted.path.clone()))
    }

    /// Works like [`Self::must_get`], and reads the JSON document.
    pub(crate) async fn json<T: DeserializeOwned>(
        &mut self,
        wanted: &CheckedRequest,
    ) -> Result<T, Violation> {
        Ok(serde_json::from_slice(&self.must_get(wanted).await?.plain)?)
    }

    pub(crate) fn check(
        &self,
        wanted: &CheckedRequest,
        answer: Answer,
    ) -> Result<VerifiedAnswer, Violation> {
        answer.must_be(StatusCode::OK)?;
        is_acceptable(
            wanted.coding,
            answer.field(CONTENT_ENCODING),
            &wanted.expectation,
        )?;
        let checked = wanted.expectation.check(answer)?;
        if !matches!(wanted.expectation, Expectation::Untagged) {
            let body = Sha256::of(&checked.answer.body);
            self.shared.history.remember(checked.answer.tag()?, body)?;
        }
        self.shared
            .statistics
            .with(wanted.route, |row| row.checked += 1);
        Ok(checked)
    }

    pub(crate) fn fine(&self, wanted: &CheckedRequest) {
        self.shared
            .statistics
            .with(wanted.route, |row| row.other += 1);
    }

    /// Returns the head of an answer whose body the caller reads itself.
    pub(crate) async fn open(
        &mut self,
        route: Route,
        ask: &RequestSpec,
    ) -> Result<hyper::Response<hyper::body::Incoming>, Violation> {
        self.last = (route, format!("{} {}", ask.method, ask.path));
        self.pace.tick().await;
        self.shared.statistics.with(route, |row| row.requests += 1);
        self.connection.open(ask).await
    }
}

/// Checks that the coding was accepted. Stored objects always have their own.
fn is_acceptable(
    asked: Option<&str>,
    found: &str,
    expectation: &Expectation,
) -> Result<(), Violation> {
    let named = asked.unwrap_or("identity");
    if found.is_empty() || named.contains(found) || matches!(expectation, Expectation::Object(_)) {
        return Ok(());
    }
    equal("the coding", &found, &named)
}
