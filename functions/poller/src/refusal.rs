//! An environment that cannot be used.

use std::{
    env, fmt,
    io::{self, Write},
    net::TcpStream,
    process::ExitCode,
};

use serde_json::json;

/// Tells Lambda why the function cannot start (AWS Lambda Developer Guide, "Using the Lambda runtime API",
/// "Initialization error"), so that whoever invokes it is told as well as the log.
pub fn refuse(problems: &dyn fmt::Display) -> ExitCode {
    tracing::error!(%problems, "the function cannot start");
    if let Ok(api) = env::var("AWS_LAMBDA_RUNTIME_API")
        && let Err(error) = report(&api, &problems.to_string())
    {
        tracing::warn!(%error, "cannot tell Lambda why");
    }
    ExitCode::FAILURE
}

/// The runtime's own client reports only what happens to it. This is the whole request that is needed.
fn report(api: &str, problems: &str) -> io::Result<()> {
    let body = json!({"errorType": "Poller.Configuration", "errorMessage": problems}).to_string();
    let mut stream = TcpStream::connect(api)?;
    write!(
        stream,
        "POST /2018-06-01/runtime/init/error HTTP/1.1\r\nHost: {api}\r\nContent-Type: application/json\r\n\
         Lambda-Runtime-Function-Error-Type: Poller.Configuration\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    // The answer says nothing, but leaving before it may take the request back.
    io::copy(&mut stream, &mut io::sink()).map(drop)
}
