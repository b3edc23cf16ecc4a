use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, StatusCode,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING},
};
use layout::Sha256;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::{
    answer::Answer,
    client::{Ask, Client, Line},
    promise::{Checked, Promise},
    tally::{Route, Tally},
    world::World,
    wrong::Wrong,
};

/// What visitors share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) tally: Tally,
    pub(crate) world: World,
}

/// One client that asks for one thing after the other, at its pace, and believes nothing.
pub(crate) struct Visitor {
    pub(crate) shared: Arc<Shared>,
    client: Client,
    pace: Interval,
    last: (Route, String),
}

/// What is asked for, and what the answer's tag promises.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) route: Route,
    pub(crate) path: String,
    pub(crate) promise: Promise,
    /// `Accept-Encoding`.
    pub(crate) coding: Option<&'static str>,
}

impl Wanted {
    pub(crate) const fn new(route: Route, path: String, promise: Promise) -> Self {
        Self {
            route,
            path,
            promise,
            coding: None,
        }
    }

    pub(crate) fn ask(&self) -> Ask {
        let ask = Ask::get(&self.path);
        match self.coding {
            Some(coding) => ask.with(ACCEPT_ENCODING, coding),
            None => ask,
        }
    }
}

impl Visitor {
    pub(crate) fn new(line: Line, every: Duration, shared: Arc<Shared>) -> Self {
        let mut pace = interval(every);
        // Who was kept waiting does not make up for it by a flood.
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            shared,
            client: Client::new(line),
            pace,
            last: ("", String::new()),
        }
    }

    /// Notes what went wrong with the last request. It may have spoilt the connection.
    pub(crate) fn complain(&mut self, wrong: &Wrong) {
        let (route, what) = &self.last;
        self.shared.tally.wrong(route, what, wrong);
        self.client.hang_up();
    }

    pub(crate) async fn ask(&mut self, route: Route, ask: &Ask) -> Result<Answer, Wrong> {
        self.last = (route, format!("{} {} {:?}", ask.method, ask.path, ask.fields));
        self.pace.tick().await;
        let begin = Instant::now();
        let answer = self.client.ask(ask).await;
        self.shared.tally.asked(route, begin.elapsed(), &answer);
        answer
    }

    /// A plain GET, checked, and now and then something more about the same. None if there is no such thing.
    pub(crate) async fn get(&mut self, wanted: &Wanted) -> Result<Option<Checked>, Wrong> {
        let answer = self.ask(wanted.route, &wanted.ask()).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let checked = self.check(wanted, answer)?;
        if !matches!(wanted.promise, Promise::Untagged) {
            Box::pin(self.ask_again(wanted, &checked)).await?;
        }
        Ok(Some(checked))
    }

    /// As [`Self::get`], of what is always there.
    pub(crate) async fn must_get(&mut self, wanted: &Wanted) -> Result<Checked, Wrong> {
        let found = self.get(wanted).await?;
        found.ok_or_else(|| Wrong::Missing(wanted.path.clone()))
    }

    pub(crate) fn check(&self, wanted: &Wanted, answer: Answer) -> Result<Checked, Wrong> {
        answer.must_be(StatusCode::OK)?;
        is_acceptable(wanted.coding, answer.field(CONTENT_ENCODING), &wanted.promise)?;
        let checked = wanted.promise.check(answer)?;
        if !matches!(wanted.promise, Promise::Untagged) {
            let body = Sha256::of(&checked.answer.body);
            self.shared.world.remember(checked.answer.tag()?, body)?;
        }
        self.shared.tally.with(wanted.route, |row| row.checked += 1);
        Ok(checked)
    }

    pub(crate) fn fine(&self, wanted: &Wanted) {
        self.shared.tally.with(wanted.route, |row| row.other += 1);
    }

    /// The head of an answer and the connection that it is read from: for those who do not read it to its end at once.
    pub(crate) async fn open(
        &mut self,
        route: Route,
        ask: &Ask,
    ) -> Result<hyper::Response<hyper::body::Incoming>, Wrong> {
        self.last = (route, format!("{} {}", ask.method, ask.path));
        self.pace.tick().await;
        self.shared.tally.with(route, |row| row.requests += 1);
        self.client.open(ask).await
    }

    pub(crate) fn hang_up(&mut self) {
        self.client.hang_up();
    }

    /// Checks what somebody has read on his own.
    pub(crate) fn judge(&self, wanted: &Wanted, head: http::response::Parts, body: Bytes) -> Result<Checked, Wrong> {
        let answer = Answer::new(&wanted.ask(), head, body)?;
        self.shared
            .tally
            .with(wanted.route, |row| row.bytes += answer.body.len() as u64);
        self.check(wanted, answer)
    }
}

/// Whether a coding was asked for. Stored objects have theirs, whatever is asked for.
fn is_acceptable(asked: Option<&str>, found: &str, promise: &Promise) -> Result<(), Wrong> {
    let named = asked.unwrap_or("identity");
    if found.is_empty() || named.contains(found) || matches!(promise, Promise::Object { .. }) {
        return Ok(());
    }
    Err(Wrong::Differs {
        what: "the coding",
        found: found.to_owned(),
        expected: named.to_owned(),
    })
}

/// A field that only clients of some kinds send.
pub(crate) const fn field(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}
