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

/// The secrets of a webhook. There are several while they are being rotated.
#[derive(Debug)]
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

    fn sign(text: &str) -> String {
        let secrets = WebhookSecrets::parse(text, "here").unwrap();
        secrets.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        )
    }

    #[test]
    fn sign_matches_example_of_the_standard() {
        assert_eq!(sign(SECRET), SIGNATURE);
    }

    #[test]
    fn sign_uses_every_secret() {
        let other = format!("{PREFIX}{}", STANDARD.encode([7; 32]));
        let both = sign(&format!("{other}\n{SECRET}\n"));
        let signatures: Vec<_> = both.split(' ').collect();
        assert_eq!(signatures.len(), 2);
        assert!(signatures[0].starts_with("v1,") && signatures[0] != SIGNATURE);
        assert_eq!(signatures[1], SIGNATURE);
    }

    #[test]
    fn malformed_secret_is_refused_and_not_printed() {
        let of = |length: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; length]));
        for good in [of(24), of(64)] {
            assert!(WebhookSecrets::parse(&good, "here").is_ok(), "{good}");
        }
        for bad in [
            of(23),
            of(65),
            "hunter2hunter2".to_owned(),
            format!("{PREFIX}%"),
            SECRET[6..].to_owned(),
        ] {
            let error = WebhookSecrets::parse(&format!("{SECRET} {bad}"), "here").unwrap_err();
            assert_eq!(
                error.to_string(),
                "here: secret number 2 is not whsec_ and the base64 of 24 to 64 bytes"
            );
            assert!(!format!("{error:?}").contains(&bad), "{error:?}");
        }
        let none = WebhookSecrets::parse(" \n", "here").unwrap_err();
        assert_eq!(none.to_string(), "here holds no secret");
    }

    #[test]
    fn debug_output_hides_secrets() {
        let secrets = WebhookSecrets::parse(SECRET, "here").unwrap();
        assert_eq!(format!("{secrets:?}"), "WebhookSecrets([Key { algorithm: SHA256 }])");
    }
}
