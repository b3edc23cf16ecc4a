//! Requests to a git repository, in version 2 of the protocol over HTTP.
//!
//! ```text
//! GET  URL/info/refs?service=git-upload-pack  -> capabilities
//! POST URL/git-upload-pack  command=ls-refs   -> branches and tags
//! POST URL/git-upload-pack  command=fetch     -> sections, then the pack in packets of band 1
//! ```

use std::sync::Arc;

use bytes::{Buf, Bytes};
use fetch::{FetchResponse, Fetcher, RequestSpec};
use oci::shown;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use tokio::time::timeout;

use super::error::GitFault;
use super::location::GitLocation;
use super::packet::{Packet, PacketBuffer, command, packets, text};
use super::refs::{self, GitRef};
use crate::error::Error;
use crate::settings::SourceSettings;
use crate::web::{BodyCopy, BodyWriter, WebSession};

/// Path below the repository's URL that answers with the capabilities.
const INFO: &str = "/info/refs";

/// Path below the repository's URL that takes commands.
const COMMANDS: &str = "/git-upload-pack";

/// Header that asks for version 2 of the protocol.
const VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("git-protocol"),
    HeaderValue::from_static("version=2"),
);

/// Branch that a source without a reference means.
const DEFAULT_BRANCH: &str = "HEAD";

/// A repository whose server has said that it speaks the protocol.
pub(super) struct GitServer<'a> {
    pub(super) session: WebSession,
    settings: &'a SourceSettings,
    location: &'a GitLocation,
    /// URL for commands.
    commands: Url,
}

impl<'a> GitServer<'a> {
    /// Asks for the capabilities of the server and checks them.
    pub(super) async fn open(
        fetcher: &Fetcher,
        settings: &'a Arc<SourceSettings>,
        location: &'a GitLocation,
    ) -> Result<Self, Error> {
        let mut server = Self {
            session: WebSession::open(fetcher, settings, location.url()).await?,
            settings,
            location,
            commands: below(location.url(), COMMANDS),
        };
        let mut info = below(location.url(), INFO);
        info.set_query(Some("service=git-upload-pack"));
        let request = RequestSpec {
            headers: HeaderMap::from_iter([VERSION]),
            ..RequestSpec::default()
        };
        let asked = server.ask(&info, &request).await.and_then(|(home, answer)| {
            check_capabilities(&answer).map_err(|fault| location.error(fault))?;
            Ok(home)
        });
        let home = asked.map_err(|error| server.session.redact(error))?;
        // Some servers add .git. A redirect to another server is followed for each request instead: that server must not get
        // the password.
        if let Some(path) = home.as_ref().and_then(|url| url.path().strip_suffix(INFO)) {
            server.commands.set_path(&format!("{path}{COMMANDS}"));
        }
        Ok(server)
    }

    /// Returns the commit that the source means now.
    pub(super) async fn resolve(&self) -> Result<String, Error> {
        let name = self.location.reference().unwrap_or(DEFAULT_BRANCH);
        let found = self.refs(&refs::candidates(name)).await?;
        if let Some(commit) = refs::choose(&found, name) {
            return Ok(commit);
        }
        // Only for the message, so a failure changes nothing.
        let all = self.refs(&["refs/heads/".to_owned(), "refs/tags/".to_owned()]).await;
        let found = all.map_or_else(|_| "too many to list".to_owned(), |all| refs::listed(&all));
        Err(self.location.error(GitFault::NoRef {
            name: shown(name.as_bytes()),
            found: shown(found.as_bytes()),
        }))
    }

    async fn refs(&self, prefixes: &[String]) -> Result<Vec<GitRef>, Error> {
        let arguments = ["peel".to_owned(), "symrefs".to_owned()].into_iter();
        let arguments = arguments.chain(prefixes.iter().map(|prefix| format!("ref-prefix {prefix}")));
        let request = post(command("ls-refs", arguments));
        let (_, answer) = self.ask(&self.commands, &request).await?;
        let refs = packets(&answer).and_then(|packets| refs::parse(&packets));
        refs.map_err(|fault| self.location.error(fault))
    }

    /// Fetches the trees and files of one commit, without its history.
    pub(super) async fn pack(&self, commit: &str) -> Result<BodyCopy, Error> {
        // `thin-pack` is left out: the pack must hold all bases of its deltas.
        let arguments = [
            "no-progress",
            "ofs-delta",
            "deepen 1",
            &format!("want {commit}"),
            "done",
        ];
        let request = post(command("fetch", arguments.map(ToOwned::to_owned)));
        let mut waits = self.session.retry_waits();
        loop {
            match self.attempt(&request).await {
                Ok(copy) => return Ok(copy),
                Err(error) => self.session.pause(&mut waits, error).await?,
            }
        }
    }

    /// Makes one attempt to fetch a pack. A server packs anew for each request, so a broken pack is not continued.
    async fn attempt(&self, request: &RequestSpec) -> Result<BodyCopy, Error> {
        let place = format!("the pack of {}", self.location);
        let mut copy = BodyWriter::open(self.settings, None, place).await?;
        let limit = self.settings.resolve_timeout;
        // Only until the headers: the body has its own minimum throughput.
        let answered = timeout(limit, self.session.send(&self.commands, request.clone()));
        let mut response = answered.await.map_err(|_| Error::Timeout(limit))??;
        let failed = |fault| self.location.error(fault);
        let (mut buffer, mut section, mut received) = (PacketBuffer::default(), PackSection::Before, 0);
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.session.fetch_failed(error))?
        {
            received += chunk.len() as u64;
            // Everything counts, so that messages without end meet the limit too.
            copy.check(received)?;
            buffer.push(&chunk);
            while let Some(packet) = buffer.next().map_err(failed)? {
                if let Some(bytes) = section.take(packet).map_err(failed)? {
                    copy.write(bytes).await?;
                }
            }
        }
        if section != PackSection::After || !buffer.is_empty() {
            return Err(failed(GitFault::Truncated));
        }
        copy.finish().await
    }

    /// Asks until an answer, a permanent failure or the end of the retries. Returns the URL that answered, if it is
    /// on the configured server, and the answer.
    async fn ask(&self, url: &Url, request: &RequestSpec) -> Result<(Option<Url>, Bytes), Error> {
        let mut waits = self.session.retry_waits();
        loop {
            let response = self.session.send(url, request.clone()).await;
            let answered = match response {
                Ok(response) => self.small_answer(response).await,
                Err(error) => Err(error),
            };
            match answered {
                Ok(answer) => return Ok(answer),
                Err(error) => self.session.pause(&mut waits, error).await?,
            }
        }
    }

    async fn small_answer(&self, response: FetchResponse) -> Result<(Option<Url>, Bytes), Error> {
        let url = response.is_home.then(|| response.url().clone());
        let place = format!("the list of branches of {}", self.location);
        let answer = self.session.document(response, &self.settings.limits, place).await?;
        Ok((url, answer))
    }
}

/// Position in the answer to `fetch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PackSection {
    Before,
    Pack,
    After,
}

impl PackSection {
    /// Returns the bytes of the pack that a packet holds.
    fn take(&mut self, packet: Packet) -> Result<Option<Bytes>, GitFault> {
        match (*self, packet) {
            (Self::Before, Packet::Data(line)) => {
                if text(&line)? == "packfile" {
                    *self = Self::Pack;
                }
                Ok(None)
            }
            (Self::Before, Packet::Delimiter) | (Self::After, Packet::End) => Ok(None),
            (Self::Pack, Packet::Data(mut packet)) => match packet.try_get_u8() {
                Ok(1) => Ok(Some(packet).filter(|bytes| !bytes.is_empty())),
                Ok(2) => Ok(None),
                Ok(3) => Err(GitFault::Refused(shown(packet.trim_ascii_end()))),
                _ => Err(GitFault::Protocol("a packet of its pack has an unknown band")),
            },
            (Self::Pack, Packet::Flush) => {
                *self = Self::After;
                Ok(None)
            }
            _ => Err(GitFault::Protocol("its answer has no pack, or more than that")),
        }
    }
}

/// Checks the answer to the first request.
fn check_capabilities(answer: &[u8]) -> Result<(), GitFault> {
    let packets = packets(answer)?;
    let lines = packets.iter().filter_map(|packet| match packet {
        Packet::Data(line) => Some(text(line)),
        Packet::Flush | Packet::Delimiter | Packet::End => None,
    });
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let mut lines = lines.into_iter().peekable();
    let is_service = lines.next_if_eq(&"# service=git-upload-pack").is_some();
    if lines.next_if_eq(&"version 2").is_none() {
        let other = GitFault::NotGit("its answer does not name a version of the protocol");
        return Err(if is_service { GitFault::OldProtocol } else { other });
    }
    match lines.find_map(|line| line.strip_prefix("object-format=")) {
        // Servers before 2.28 know only SHA-1 and do not say so.
        None | Some("sha1") => Ok(()),
        Some(other) => Err(GitFault::ObjectFormat(shown(other.as_bytes()))),
    }
}

fn post(body: Bytes) -> RequestSpec {
    let field = |name, value| (name, HeaderValue::from_static(value));
    RequestSpec {
        headers: HeaderMap::from_iter([
            VERSION,
            field(CONTENT_TYPE, "application/x-git-upload-pack-request"),
            field(ACCEPT, "application/x-git-upload-pack-result"),
        ]),
        body: Some(body),
        ..RequestSpec::new(Method::POST)
    }
}

/// Returns the URL of `path` below the repository.
fn below(repository: &Url, path: &str) -> Url {
    let mut url = repository.clone();
    url.set_path(&format!("{}{path}", repository.path()));
    url
}
