use http::header::{ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, IF_MATCH};
use http::{HeaderName, Method, StatusCode};

use super::any;
use crate::client::Client;
use crate::connection::RequestSpec;
use crate::violation::{Violation, equal};

/// Request that must be refused, with its status. `{c}` stands for an existing catalog, `{h}` for a hash that nothing has.
type Case = (Method, &'static str, Option<(HeaderName, &'static str)>, u16);

const NOTHING: &str = "00000000000000000000000000000000000000000000000000000000000000ff";

const ALL: &str = "/catalogs/{c}/api/v1/all";

/// One for each status and form of error. The contract tests of `http-api` have those of every route.
const CASES: &[Case] = &[
    (Method::GET, "/nothing", None, 404),
    (Method::GET, "/catalogs/unknown/current.json", None, 404),
    (Method::GET, "/catalogs/A_B/current.json", None, 400),
    (Method::GET, "/catalogs/..%2f..%2fetc/current.json", None, 400),
    (Method::GET, "/snapshots/sha256/{h}.json.zst", None, 404),
    (Method::GET, "/catalogs/{c}/notified.json", None, 404),
    (Method::GET, "/catalogs/{c}/layers.json", None, 404),
    (Method::GET, "/catalogs/{c}/changes?since={h}", None, 410),
    (Method::POST, ALL, None, 405),
    (Method::GET, ALL, Some((ACCEPT_ENCODING, "*;q=0")), 406),
    (Method::GET, ALL, Some((IF_MATCH, "\"another\"")), 412),
    (Method::GET, "/v2/{c}/manifests/sha256:{h}", None, 404),
    (Method::GET, "/v2/{c}/blobs/sha256:x", None, 400),
    (Method::PUT, "/v2/{c}/manifests/latest", None, 405),
];

impl Client {
    /// Sends a request that must be refused, and checks the status and the form of the error.
    pub(super) async fn refused(&mut self, catalog: &str) -> Result<(), Violation> {
        let (method, path, field, status) = any(CASES);
        let mut ask = RequestSpec {
            method: method.clone(),
            ..RequestSpec::get(&path.replace("{c}", catalog).replace("{h}", NOTHING))
        };
        if let Some((name, value)) = field {
            ask = ask.with(name.clone(), value);
        }
        let answer = self.ask("(refused)", &ask).await?;
        answer.must_be(StatusCode::from_u16(*status).expect("it is one"))?;
        let kind = match path.starts_with("/v2/") {
            true => "application/json",
            false => "application/problem+json",
        };
        equal("the kind of a refusal", &answer.field(CONTENT_TYPE), &kind)?;
        equal("what is allowed", &answer.field(ALLOW).is_empty(), &(*status != 405))?;
        serde_json::from_slice::<serde_json::Value>(&answer.body)?;
        self.shared.statistics.with("(refused)", |row| row.other += 1);
        Ok(())
    }
}
