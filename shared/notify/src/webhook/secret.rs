use std::{env, fmt, fs, io, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac::{HMAC_SHA256, Key, sign};

/// Where the secrets of a webhook are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// A file with one secret on each line.
    File(PathBuf),
    /// An environment variable with secrets between white space.
    Variable(String),
}

/// The secrets that a webhook is signed with: more than one while they are being rotated.
pub(crate) struct Secrets(Vec<Key>);

/// Why there are no secrets to sign with. None of these quotes what was read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret file {path}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The environment variable is not set, or is no text.
    #[error("the environment variable {0} does not hold a secret")]
    Variable(String),
    /// A secret that is not what Standard Webhooks says.
    #[error("{place}: secret number {number} is not whsec_ and the base64 of 24 to 64 bytes")]
    Malformed {
        /// Where it was found.
        place: String,
        /// Which of the secrets there, from 1.
        number: usize,
    },
    /// There is no secret.
    #[error("{0} holds no secret")]
    Empty(String),
}

/// How long a secret may be, in bytes (Standard Webhooks 1.0.0, "Signature scheme").
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;
const PREFIX: &str = "whsec_";

impl SecretPlace {
    /// Reads the secrets as they are now.
    pub(crate) fn read(&self) -> Result<Secrets, SecretError> {
        let text = match self {
            Self::File(path) => fs::read_to_string(path).map_err(|source| SecretError::File {
                path: path.clone(),
                source,
            })?,
            Self::Variable(name) => env::var(name).map_err(|_| SecretError::Variable(name.clone()))?,
        };
        Secrets::parse(&text, &self.to_string())
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

impl Secrets {
    fn parse(text: &str, place: &str) -> Result<Self, SecretError> {
        let malformed = |number| SecretError::Malformed {
            place: place.to_owned(),
            number,
        };
        let words = text.split_whitespace().enumerate();
        let keys = words.map(|(at, word)| key(word).ok_or_else(|| malformed(at + 1)));
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(SecretError::Empty(place.to_owned()));
        }
        Ok(Self(keys))
    }

    /// The `webhook-signature` field: a signature with each secret (Standard Webhooks 1.0.0, "Signature scheme" and
    /// "Webhook headers").
    pub(crate) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let content = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let signatures = self.0.iter().map(|key| STANDARD.encode(sign(key, &content)));
        let signatures: Vec<_> = signatures.map(|signature| format!("v1,{signature}")).collect();
        signatures.join(" ")
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets(<{} redacted>)", self.0.len())
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
        let secrets = Secrets::parse(text, "here").unwrap();
        secrets.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        )
    }

    #[test]
    fn signs_as_the_standard_says() {
        assert_eq!(sign(SECRET), SIGNATURE);
    }

    #[test]
    fn signs_with_every_secret() {
        let other = format!("{PREFIX}{}", STANDARD.encode([7; 32]));
        let both = sign(&format!("{other}\n{SECRET}\n"));
        let signatures: Vec<_> = both.split(' ').collect();
        assert_eq!(signatures.len(), 2);
        assert!(signatures[0].starts_with("v1,") && signatures[0] != SIGNATURE);
        assert_eq!(signatures[1], SIGNATURE);
    }

    #[test]
    fn what_is_no_secret_is_refused_and_never_printed() {
        let of = |length: usize| format!("{PREFIX}{}", STANDARD.encode(vec![7; length]));
        for good in [of(24), of(64)] {
            assert!(Secrets::parse(&good, "here").is_ok(), "{good}");
        }
        for bad in [
            of(23),
            of(65),
            "hunter2hunter2".to_owned(),
            format!("{PREFIX}%"),
            SECRET[6..].to_owned(),
        ] {
            let error = Secrets::parse(&format!("{SECRET} {bad}"), "here").unwrap_err();
            assert!(matches!(&error, SecretError::Malformed { number: 2, .. }), "{error}");
            assert!(!format!("{error:?}").contains(&bad), "{error:?}");
        }
        assert!(matches!(Secrets::parse(" \n", "here"), Err(SecretError::Empty(_))));
    }

    #[test]
    fn secrets_do_not_print() {
        let secrets = Secrets::parse(SECRET, "here").unwrap();
        assert_eq!(format!("{secrets:?}"), "Secrets(<1 redacted>)");
    }

    #[test]
    fn a_place_without_secrets_is_told() {
        let missing = SecretPlace::File("/nonexistent/secret".into());
        assert!(matches!(missing.read(), Err(SecretError::File { .. })));
        let unset = SecretPlace::Variable("NO_SUCH_VARIABLE_IS_SET".into());
        assert!(matches!(unset.read(), Err(SecretError::Variable(_))));
    }
}
