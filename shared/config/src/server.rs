use std::{path::PathBuf, time::Duration};

use serde::Deserialize;

use super::Problems;

/// How the mirror is served, as configured. What is not said is for the one to decide who serves, who also judges the
/// files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// The chain of certificates, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Who may read; everybody, without one.
    pub readers: Option<PathBuf>,
    /// How much, and how long, clients are let.
    pub limits: ServerLimits,
}

/// Limits that differ from the defaults; none of them is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at the same time.
    pub connections: Option<usize>,
    /// Requests at the same time on a connection of HTTP/2.
    pub streams: Option<u32>,
    /// The time for a TLS handshake.
    pub handshake: Option<Duration>,
    /// The time to the end of the first request's head.
    pub first_request: Option<Duration>,
    /// The time between an answer and the next request.
    pub idle: Option<Duration>,
    /// The time in which something of an answer has to be taken.
    pub stalled: Option<Duration>,
    /// The time for answers under way at the end.
    pub drain: Option<Duration>,
}

/// `server` of `catalogs.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Entry {
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    readers: Option<PathBuf>,
    #[serde(default)]
    limits: Limits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Limits {
    connections: Option<usize>,
    streams: Option<u32>,
    handshake: Option<String>,
    first_request: Option<String>,
    idle: Option<String>,
    stalled: Option<String>,
    drain: Option<String>,
}

impl Server {
    /// Adds what another one says; it wins.
    pub(crate) fn extend(&mut self, other: Self) {
        replace(&mut self.tls_cert, other.tls_cert);
        replace(&mut self.tls_key, other.tls_key);
        replace(&mut self.readers, other.readers);
        self.limits.extend(&other.limits);
    }

    /// What can only be judged when everything has been read.
    pub(crate) fn check(&self, problems: &mut Problems) {
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => problems.add("server", "there is a TLS certificate, but no key for it"),
            (None, Some(_)) => problems.add("server", "there is a TLS key, but no certificate for it"),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

impl ServerLimits {
    fn extend(&mut self, other: &Self) {
        replace(&mut self.connections, other.connections);
        replace(&mut self.streams, other.streams);
        replace(&mut self.handshake, other.handshake);
        replace(&mut self.first_request, other.first_request);
        replace(&mut self.idle, other.idle);
        replace(&mut self.stalled, other.stalled);
        replace(&mut self.drain, other.drain);
    }
}

impl Entry {
    pub(crate) fn read(self, place: &str, problems: &mut Problems) -> Server {
        Server {
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            readers: self.readers,
            limits: self.limits.read(&format!("{place}, server"), problems),
        }
    }
}

impl Limits {
    fn read(self, place: &str, problems: &mut Problems) -> ServerLimits {
        if self.connections == Some(0) || self.streams == Some(0) {
            problems.add(place, "a limit of 0 would let nobody in");
        }
        let mut time = |text: Option<String>| {
            let text = text?;
            match humantime::parse_duration(&text) {
                Ok(Duration::ZERO) => problems.add(place, "a limit of 0 would let nobody in"),
                Ok(time) => return Some(time),
                Err(error) => problems.add(place, format!("{text:?} is no duration such as 30s: {error}")),
            }
            None
        };
        ServerLimits {
            connections: self.connections,
            streams: self.streams,
            handshake: time(self.handshake),
            first_request: time(self.first_request),
            idle: time(self.idle),
            stalled: time(self.stalled),
            drain: time(self.drain),
        }
    }
}

fn replace<T>(old: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *old = new;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Problems, Reader, Server};

    fn read(text: &str) -> Result<Server, Problems> {
        let mut reader = Reader::new(Duration::from_secs(60));
        reader.text("catalogs.yaml", text);
        reader.finish().map(|config| config.server)
    }

    #[test]
    fn what_is_said_is_taken() {
        let text = "server: {tlsCert: c.pem, tlsKey: k.pem, readers: r, limits: {connections: 9, stalled: 5s}}";
        let server = read(text).unwrap();
        assert_eq!(server.tls_cert.as_deref(), Some("c.pem".as_ref()));
        assert_eq!(server.limits.connections, Some(9));
        assert_eq!(server.limits.stalled, Some(Duration::from_secs(5)));
        assert_eq!(server.limits.idle, None);
    }

    #[test]
    fn the_command_line_wins() {
        let mut reader = Reader::new(Duration::from_secs(60));
        reader.text("catalogs.yaml", "server: {tlsCert: c.pem, tlsKey: k.pem}");
        reader.server(Server {
            tls_cert: Some("other.pem".into()),
            ..Server::default()
        });
        let server = reader.finish().unwrap().server;
        assert_eq!(server.tls_cert.as_deref(), Some("other.pem".as_ref()));
        assert_eq!(server.tls_key.as_deref(), Some("k.pem".as_ref()));
    }

    #[test]
    fn what_cannot_be_is_a_problem() {
        for (text, part) in [
            ("server: {tlsCert: c.pem}", "no key"),
            ("server: {tlsKey: k.pem}", "no certificate"),
            ("server: {limits: {connections: 0}}", "nobody"),
            ("server: {limits: {idle: 0s}}", "nobody"),
            ("server: {limits: {idle: soon}}", "soon"),
            ("server: {limit: {}}", "limit"),
        ] {
            let problems = read(text).unwrap_err().to_string();
            assert!(problems.contains(part), "{text}: {problems}");
        }
    }
}
