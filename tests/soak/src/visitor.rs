use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, Method, StatusCode,
    header::{
        ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE,
        RANGE,
    },
};
use layout::Sha256;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::{
    answer::Answer,
    client::{Ask, Client, Line},
    promise::{Checked, Promise},
    tally::{Route, Tally},
    world::World,
    wrong::{Wrong, equal},
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

    fn ask(&self) -> Ask {
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

    fn check(&self, wanted: &Wanted, answer: Answer) -> Result<Checked, Wrong> {
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

    async fn ask_again(&mut self, wanted: &Wanted, checked: &Checked) -> Result<(), Wrong> {
        match rand::random_range(0..12) {
            0 | 1 => self.conditional(wanted, checked).await,
            2 => self.head(wanted, checked).await,
            3 if checked.answer.field(ACCEPT_RANGES) == "bytes" => self.range(wanted, checked).await,
            4 if checked.answer.field(ACCEPT_RANGES) == "bytes" => self.beyond(wanted, checked).await,
            _ => Ok(()),
        }
    }

    /// 304 without a body, or another state (RFC 9110, section 13.1.2).
    async fn conditional(&mut self, wanted: &Wanted, checked: &Checked) -> Result<(), Wrong> {
        let tag = checked.answer.field(ETAG).to_owned();
        let answer = self.ask(wanted.route, &wanted.ask().with(IF_NONE_MATCH, &tag)).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => {
                equal("the tag of a 304", &answer.field(ETAG), &tag.as_str())?;
                self.fine(wanted);
            }
            StatusCode::NOT_FOUND => {}
            _ => {
                let again = self.check(wanted, answer)?;
                differs(again.answer.field(ETAG), &tag)?;
            }
        }
        Ok(())
    }

    /// The same fields as GET has (RFC 9110, section 9.3.2), if it is still the same.
    async fn head(&mut self, wanted: &Wanted, checked: &Checked) -> Result<(), Wrong> {
        let ask = Ask {
            method: Method::HEAD,
            ..wanted.ask()
        };
        let answer = self.ask(wanted.route, &ask).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        answer.must_be(StatusCode::OK)?;
        if answer.tag()? == checked.answer.tag()? {
            for name in [CONTENT_TYPE, CONTENT_ENCODING] {
                equal(
                    "a field of HEAD",
                    &answer.field(name.clone()),
                    &checked.answer.field(name),
                )?;
            }
            if let (Some(found), Some(expected)) = (answer.length(), checked.answer.length()) {
                equal("the length that HEAD tells", &found, &expected)?;
            }
        }
        self.fine(wanted);
        Ok(())
    }

    /// A part of the same, or all of something else (RFC 9110, section 13.1.5).
    async fn range(&mut self, wanted: &Wanted, checked: &Checked) -> Result<(), Wrong> {
        let body = &checked.answer.body;
        if body.is_empty() {
            return Ok(());
        }
        let first = rand::random_range(0..body.len());
        let last = rand::random_range(first..body.len());
        let Some(answer) = self.part(wanted, checked, &format!("bytes={first}-{last}")).await? else {
            return Ok(());
        };
        answer.must_be(StatusCode::PARTIAL_CONTENT)?;
        let expected = format!("bytes {first}-{last}/{}", body.len());
        equal("the range", &answer.field(CONTENT_RANGE), &expected.as_str())?;
        let (found, expected) = (Sha256::of(&answer.body), Sha256::of(&body[first..=last]));
        equal("the hash of a part", &found, &expected)?;
        self.fine(wanted);
        Ok(())
    }

    /// What begins behind the end cannot be had (RFC 9110, section 15.5.17).
    async fn beyond(&mut self, wanted: &Wanted, checked: &Checked) -> Result<(), Wrong> {
        let length = checked.answer.body.len();
        if let Some(answer) = self.part(wanted, checked, &format!("bytes={length}-")).await? {
            answer.must_be(StatusCode::RANGE_NOT_SATISFIABLE)?;
            let expected = format!("bytes */{length}");
            equal("the range", &answer.field(CONTENT_RANGE), &expected.as_str())?;
            self.fine(wanted);
        }
        Ok(())
    }

    /// None if it is not the same any more.
    async fn part(&mut self, wanted: &Wanted, checked: &Checked, range: &str) -> Result<Option<Answer>, Wrong> {
        let tag = checked.answer.field(ETAG).to_owned();
        let ask = wanted.ask().with(RANGE, range).with(IF_RANGE, &tag);
        let answer = self.ask(wanted.route, &ask).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => {
                let again = self.check(wanted, answer)?;
                differs(again.answer.field(ETAG), &tag).map(|()| None)
            }
            _ => Ok(Some(answer)),
        }
    }

    fn fine(&self, wanted: &Wanted) {
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

/// The tag has to be another one.
fn differs(found: &str, before: &str) -> Result<(), Wrong> {
    if found == before {
        return Err(Wrong::Differs {
            what: "the status for an unchanged tag",
            found: "200".into(),
            expected: "304, 206 or 416".into(),
        });
    }
    Ok(())
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
