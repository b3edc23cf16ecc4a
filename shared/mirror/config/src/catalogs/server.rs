use std::path::PathBuf;

use model::CatalogName;
use work::ServerLimits;

use super::section::Section;
use super::values::{byte_size, origin, time_limit, title};
use crate::problems::{Problems, count};

/// Largest number of connections, and of requests on one of them. Far above any machine's
/// descriptors, and below what a semaphore can count.
const COUNT_MAX: u32 = 1_000_000;

/// Settings of the HTTP server, from `server` of `catalogs.yaml` and from flags. The server reads
/// the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// PEM file with the chain of certificates. Default: no TLS.
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate.
    pub tls_key: Option<PathBuf>,
    /// File with the users who may read. Default: no authentication.
    pub readers: Option<PathBuf>,
    /// Origins whose pages users may read with. Without users all origins may read. Default: none.
    pub cors: Vec<String>,
    /// Title of the page. Default: `Operator catalogs`.
    pub title: Option<String>,
    /// Limits for clients of HTTP.
    pub limits: ServerLimits,
    /// Limits for clients of gRPC, which may stay idle. Those without a name of their own are set
    /// with the limits of HTTP.
    pub grpc_limits: ServerLimits,
}

/// Settings of the registry API of OLM v0, from `grpc` of `catalogs.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GrpcConfig {
    /// Catalogs that are served without credentials and without TLS although HTTP asks for them.
    /// Default: none.
    pub anonymous: Option<Vec<CatalogName>>,
    /// True for TLS with the certificate of the HTTP server. OLM v0 speaks no TLS. Default: false.
    pub tls: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            tls_cert: None,
            tls_key: None,
            readers: None,
            cors: Vec::new(),
            title: None,
            limits: ServerLimits::default(),
            grpc_limits: ServerLimits::grpc(),
        }
    }
}

impl ServerConfig {
    /// Adds `server` of `catalogs.yaml`. What it sets replaces what was set.
    pub(crate) fn add(&mut self, section: &mut Section) {
        self.extend(Self {
            tls_cert: section.field("tlsCert"),
            tls_key: section.field("tlsKey"),
            readers: section.field("readers"),
            cors: section.parsed_list("cors", origin),
            title: section.parsed("title", title),
            ..Self::default()
        });
        section.with("limits", |limits| self.add_limits(limits));
    }

    fn add_limits(&mut self, section: &mut Section) {
        let http = &mut self.limits;
        let grpc = &mut self.grpc_limits;
        read_limit(section, "connections", connections, [&mut http.connections]);
        read_limit(section, "streams", streams, [&mut http.streams]);
        read_limit(
            section,
            "grpcConnections",
            connections,
            [&mut grpc.connections],
        );
        read_limit(section, "grpcStreams", streams, [&mut grpc.streams]);
        read_limit(section, "idle", time_limit, [&mut http.idle]);
        read_limit(section, "answerBytes", byte_size, [&mut http.answer_bytes]);

        let both = [&mut http.handshake, &mut grpc.handshake];
        read_limit(section, "handshake", time_limit, both);
        let both = [&mut http.first_request, &mut grpc.first_request];
        read_limit(section, "firstRequest", time_limit, both);
        let both = [&mut http.stalled, &mut grpc.stalled];
        read_limit(section, "stalled", time_limit, both);
        let both = [&mut http.answer_wait, &mut grpc.answer_wait];
        read_limit(section, "answerWait", time_limit, both);
        let both = [&mut http.drain, &mut grpc.drain];
        read_limit(section, "drain", time_limit, both);
    }

    /// Adds the files and origins of other settings. What they set replaces what was set.
    pub fn extend(&mut self, other: Self) {
        self.tls_cert = other.tls_cert.or(self.tls_cert.take());
        self.tls_key = other.tls_key.or(self.tls_key.take());
        self.readers = other.readers.or(self.readers.take());
        if !other.cors.is_empty() {
            self.cors = other.cors;
        }
        self.title = other.title.or(self.title.take());
    }

    /// Checks that certificate and key are set together, once all files and flags have been read.
    pub(crate) fn check(&self, problems: &Problems) {
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => problems.add("server", "tlsCert is set and tlsKey is missing"),
            (None, Some(_)) => problems.add("server", "tlsKey is set and tlsCert is missing"),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
}

/// Reads a limit of one server or of several. A field that is absent leaves it as it is.
fn connections(text: &str) -> Result<usize, String> {
    count(text, 1..=COUNT_MAX as usize)
}

fn streams(text: &str) -> Result<u32, String> {
    count(text, 1..=COUNT_MAX)
}

fn read_limit<T: Copy, const SERVERS: usize>(
    section: &mut Section,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
    limits: [&mut T; SERVERS],
) {
    if let Some(value) = section.parsed(name, parse) {
        for limit in limits {
            *limit = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use work::ServerLimits;

    use super::super::tests::{check_problems, load};
    use crate::{ConfigLoader, ServerConfig};

    #[test]
    fn server_fields_are_read() {
        let text = "server: {tlsCert: c.pem, tlsKey: k.pem, readers: r, cors: ['https://docs.lab'], title: Operators of the lab, limits: {connections: 9, stalled: 5s, answerBytes: 64MiB}}";
        let server = load(text).unwrap().server;
        assert_eq!(server.tls_cert.as_deref(), Some("c.pem".as_ref()));
        assert_eq!(server.cors, ["https://docs.lab"]);
        assert_eq!(server.title.as_deref(), Some("Operators of the lab"));
        let http = ServerLimits {
            connections: 9,
            stalled: Duration::from_secs(5),
            answer_bytes: 64 << 20,
            ..ServerLimits::default()
        };
        assert_eq!(server.limits, http);
        let grpc = ServerLimits {
            stalled: Duration::from_secs(5),
            ..ServerLimits::grpc()
        };
        assert_eq!(server.grpc_limits, grpc);
    }

    #[test]
    fn server_flags_win_over_files() {
        let mut loader = ConfigLoader::new(Duration::from_secs(60));
        loader.text("catalogs.yaml", "server: {tlsCert: c.pem, tlsKey: k.pem}");
        loader.config.server.extend(ServerConfig {
            tls_cert: Some("other.pem".into()),
            ..ServerConfig::default()
        });
        let server = loader.finish().unwrap().server;
        assert_eq!(server.tls_cert.as_deref(), Some("other.pem".as_ref()));
        assert_eq!(server.tls_key.as_deref(), Some("k.pem".as_ref()));
    }

    const WRONG: &str = r#"
{tlsCert: c.pem} => tlsKey is missing
{tlsKey: k.pem} => tlsCert is missing
{limits: {connections: 0}} => server, limits, connections: 0 is out of range
{limits: {streams: many}} => server, limits, streams: "many"
{limits: {idle: 0s}} => server, limits, idle: 0s is out of range
{limits: {drain: soon}} => server, limits, drain: "soon"
{limit: {}} => unknown field limit
{cors: [docs.lab]} => server, cors: "docs.lab" is not an origin
{cors: ["https://docs.lab/"]} => server, cors: "https://docs.lab/"
{cors: ["*"]} => server, cors: "*"
{title: "a\nb"} => server, title: "a\nb" is not one line
"#;

    #[test]
    fn server_problem_names_the_limit() {
        check_problems(WRONG, |server| format!("server: {server}"));
    }
}
