use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use model::Sha256;
use testkit::Answer;

use crate::site::with_site;

/// Sends a request to the registry API: `METHOD PATH`, then header fields, each on a line. Nothing
/// may change, refusals must follow the specification, and bodies must match their digests.
///
/// # Panics
/// If one of these does not hold.
pub(crate) fn oci(input: &[u8]) {
    if let Some((method, uri, fields)) = request(input) {
        let answer = with_site(|site| site.ask(method.clone(), uri.clone(), fields));
        let about = format!("{} to {method} {uri}", answer.status);
        assert_eq!(
            answer.header("docker-distribution-api-version"),
            "registry/2.0",
            "{about}"
        );
        assert!(!answer.status.is_server_error(), "{about}");
        let reads = method == Method::GET || method == Method::HEAD;
        let is_preflight = method == Method::OPTIONS && answer.status == StatusCode::NO_CONTENT;
        assert!(
            reads || is_preflight || answer.status.is_client_error(),
            "{about}"
        );
        if method == Method::HEAD {
            assert_eq!(answer.bytes(), b"", "{about}");
        } else if answer.status.is_client_error() {
            check_refusal(&answer, &about);
        } else if answer.status == 200 {
            check_digest(&answer, &about);
        }
    }
}

/// Parses the request. Only paths below `/v2/` belong to this API.
fn request(input: &[u8]) -> Option<(Method, Uri, HeaderMap)> {
    let text = std::str::from_utf8(input).ok()?;
    let mut lines = text.split('\n');
    let (method, path) = lines.next()?.split_once(' ')?;
    let uri: Uri = path.strip_prefix("/v2").and(path.parse().ok())?;
    (uri.path() == "/v2" || uri.path().starts_with("/v2/")).then_some(())?;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((
            name.parse::<HeaderName>().ok()?,
            value.trim().parse::<HeaderValue>().ok()?,
        ))
    };
    Some((method.parse().ok()?, uri, lines.filter_map(field).collect()))
}

/// Checks an error document (OCI distribution specification 1.1, "Error Codes").
fn check_refusal(answer: &Answer, about: &str) {
    assert_eq!(answer.header("content-type"), "application/json", "{about}");
    let body: serde_json::Value = serde_json::from_slice(answer.bytes()).expect("an error is JSON");
    let code = body["errors"][0]["code"].as_str().unwrap_or_default();
    let is_code = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    assert!(!code.is_empty() && is_code(code), "{about}: {body}");
    assert!(body["errors"][0]["message"].is_string(), "{about}: {body}");
}

fn check_digest(answer: &Answer, about: &str) {
    let digest = answer.header("docker-content-digest");
    if !digest.is_empty() {
        assert_eq!(
            digest,
            format!("sha256:{}", Sha256::of(answer.bytes())),
            "{about}"
        );
    }
}
