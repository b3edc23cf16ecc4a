use std::{env, fs, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac::{HMAC_SHA256, Key, sign};

use crate::WebhookError;

/// Location of the secrets of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretLocation {
    /// A file with one secret on each line.
    File(PathBuf),
    /// An environment variable with secrets separated by white space.
    Variable(String),
}

/// The secrets of a webhook. There are several while they are being rotated. Without `Debug`, so that no log prints them.
pub(crate) struct WebhookSecrets(Vec<Key>);

/// Allowed lengths of a secret in bytes (Standard Webhooks 1.0.0, "Signature scheme").
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
const PREFIX: &str = "whsec_";

impl SecretLocation {
    /// Reads the secrets that the file or variable holds now.
    pub(crate) fn read(&self) -> Result<WebhookSecrets, WebhookError> {
        match self {
            Self::File(path) => {
                let place = path.display().to_string();
                let text = fs::read_to_string(path)
                    .map_err(|error| WebhookError(format!("cannot read the secret file {place}: {error}")))?;
                WebhookSecrets::parse(&text, &place)
            }
            Self::Variable(name) => {
                let unset = |_| WebhookError(format!("the environment variable {name} does not hold a secret"));
                WebhookSecrets::parse(&env::var(name).map_err(unset)?, name)
            }
        }
    }
}

impl WebhookSecrets {
    fn parse(text: &str, place: &str) -> Result<Self, WebhookError> {
        let malformed = |number| {
            WebhookError(format!(
                "{place}: secret number {number} is not whsec_ and the base64 of 24 to 64 bytes"
            ))
        };
        let words = text.split_whitespace().enumerate();
        let keys = words.map(|(at, word)| key(word).ok_or_else(|| malformed(at + 1)));
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(WebhookError(format!("{place} holds no secret")));
        }
        Ok(Self(keys))
    }

    /// Returns the `webhook-signature` header: one signature for each secret (Standard Webhooks 1.0.0, "Signature scheme"
    /// and "Webhook headers").
    pub(crate) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let content = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let signatures = self.0.iter().map(|key| STANDARD.encode(sign(key, &content)));
        let signatures: Vec<_> = signatures.map(|signature| format!("v1,{signature}")).collect();
        signatures.join(" ")
    }
}

fn key(word: &str) -> Option<Key> {
    let bytes = STANDARD.decode(word.strip_prefix(PREFIX)?).ok()?;
    LENGTHS.contains(&bytes.len()).then(|| Key::new(HMAC_SHA256, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks libraries.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn sign_uses_every_secret_as_the_standard_says() {
        let other = format!("{PREFIX}{}", STANDARD.encode([7; 32]));
        let secrets = WebhookSecrets::parse(&format!("{other}\n{SECRET}\n"), "here").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        let (first, second) = signed.split_once(' ').unwrap();
        assert!(first.starts_with("v1,") && first != SIGNATURE, "{first}");
        assert_eq!(second, SIGNATURE);
    }

    #[test]
    fn malformed_secret_is_refused_and_not_printed() {
        let of = |length: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; length]));
        let problem = |text: &str| WebhookSecrets::parse(text, "here").err().map(|error| error.to_string());
        for good in [of(24), of(64)] {
            assert_eq!(problem(&good), None, "{good}");
        }
        let expected = "here: secret number 2 is not whsec_ and the base64 of 24 to 64 bytes";
        for bad in [&of(23), &of(65), "hunter2hunter2", "whsec_%", &SECRET[6..]] {
            assert_eq!(problem(&format!("{SECRET} {bad}")).as_deref(), Some(expected), "{bad}");
        }
        assert_eq!(problem(" \n").as_deref(), Some("here holds no secret"));
    }
}
