//! Credential helpers: programs that read a server's name on stdin and write its credentials to
//! stdout.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::auth::error::CredentialsError;

/// Maximum time for one helper. Some ask a cloud, which takes seconds.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Output of a helper that does not know the server. The protocol has no code for it.
const NOT_FOUND: &str = "credentials not found in native keychain";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct HelperAnswer {
    pub(crate) username: String,
    pub(crate) secret: String,
}

/// Asks `helper` for the credentials of `server`. Returns `None` if it does not know the server.
pub(crate) async fn get(
    helper: &str,
    server: &str,
) -> Result<Option<HelperAnswer>, CredentialsError> {
    let failed = |why: String| CredentialsError::Helper {
        helper: helper.to_owned(),
        why,
    };
    let Ok(ran) = timeout(TIMEOUT, run(helper, server)).await else {
        return Err(failed(format!("no answer within {} s", TIMEOUT.as_secs())));
    };
    let output = ran.map_err(|source| CredentialsError::Run {
        helper: helper.to_owned(),
        source,
    })?;
    if output.status.success() {
        let answer = serde_json::from_slice(&output.stdout);
        return answer.map_err(|_| failed("its answer is not understood".to_owned()));
    }
    match String::from_utf8_lossy(&output.stdout).trim() {
        NOT_FOUND => Ok(None),
        _ => Err(failed(output.status.to_string())),
    }
}

async fn run(helper: &str, server: &str) -> std::io::Result<Output> {
    let mut child = Command::new(helper)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper may answer without reading its input, which closes the pipe.
        stdin.write_all(server.as_bytes()).await.ok();
    }
    child.wait_with_output().await
}
