//! From an event to the request that the client made.

use std::fmt::Write;

use lambda_http::{
    Request, RequestExt,
    http::{Uri, header::HOST},
    request::LambdaRequest,
};

/// Prepares an event for being read as a request. The same path reaches a function in three ways: a function URL
/// passes it on as the client wrote it, an HTTP API decodes it, and one with a named stage puts the stage in front
/// (API Gateway Developer Guide, "Create AWS Lambda proxy integrations for HTTP APIs").
pub(crate) fn tidy(event: &mut LambdaRequest) {
    let LambdaRequest::ApiGatewayV2(event) = event else {
        return;
    };
    let path = event.raw_path.take().unwrap_or_default();
    let stage = event.request_context.stage.take();
    event.raw_path = Some(escape(without_stage(&path, stage.as_deref()), b""));
    event.raw_query_string = event.raw_query_string.take().map(|query| escape(&query, b"?"));
    // Nothing asks for them, and a URL that is built from them may be none.
    event.headers.remove(HOST);
    event.request_context.domain_name = None;
}

/// The path and query as the client wrote them: the library resolves `..` on the way, which the local server does not.
pub(crate) fn uri(request: &Request) -> Uri {
    let path = request.raw_http_path();
    let uri = match request.uri().query() {
        Some(query) => format!("{path}?{query}").parse(),
        None => path.parse(),
    };
    uri.unwrap_or_else(|_| request.uri().clone())
}

fn without_stage<'a>(path: &'a str, stage: Option<&str>) -> &'a str {
    let stage = stage.filter(|stage| *stage != "$default");
    stage
        .and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage))
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(path)
}

/// Percent-encodes what cannot stand in a path (RFC 3986, section 3.3) or in one of `also`. What is encoded already
/// stays as it is: a decoded path that holds a percent sign cannot be told from it, and no name in a catalog has one.
fn escape(text: &str, also: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/%".contains(&byte) || also.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a string takes all that fits in memory");
        }
    }
    escaped
}
