//! Credential helpers: programs that answer on stdout to a server name on stdin.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::auth::{CredentialsError, Secret};

/// Helpers may ask a cloud; none should take this long.
const LONGEST: Duration = Duration::from_secs(30);

/// How the protocol spells "I know no such server". There is no code for it.
const NOT_FOUND: &str = "credentials not found in native keychain";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Asks `helper` about `server`. `None` if it knows nothing, which is not a failure.
pub(crate) async fn get(helper: &str, server: &str) -> Result<Option<Secret>, CredentialsError> {
    let failed = |why: String| CredentialsError::Helper {
        helper: helper.to_owned(),
        why,
    };
    let running = timeout(LONGEST, run(helper, server)).await;
    let output = running.map_err(|_| failed(format!("no answer within {} s", LONGEST.as_secs())))?;
    let output = output.map_err(|source| CredentialsError::Run {
        helper: helper.to_owned(),
        source,
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        return if said.trim() == NOT_FOUND {
            Ok(None)
        } else {
            Err(failed(output.status.to_string()))
        };
    }
    let answer: Answer =
        serde_json::from_slice(&output.stdout).map_err(|_| failed("its answer is not understood".to_owned()))?;
    Ok(Some(if answer.username == "<token>" {
        Secret::IdentityToken(answer.secret)
    } else {
        Secret::Password {
            user: answer.username,
            password: answer.secret,
        }
    }))
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
        // A helper that answers without reading its input has closed it.
        stdin.write_all(server.as_bytes()).await.ok();
    }
    child.wait_with_output().await
}
