use std::fmt;

use layout::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::{readers::verified::Verified, reread::FileError};

/// The costliest bcrypt that is verified: 2^14 rounds take a second. More would let one request take a processor for
/// minutes.
const COST_MAX: u32 = 14;

/// A list of readers that cannot be used. None of these quotes what was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadersError {
    /// Not text.
    #[error("it is not UTF-8")]
    Text,
    /// A line of no kind that is known.
    #[error("line {0} is neither NAME:$2y$... (htpasswd -B) nor NAME:sha256:HEX")]
    Line(usize),
    /// A password that would take too long to verify.
    #[error("line {0} has a bcrypt hash of a cost above {COST_MAX}")]
    Cost(usize),
    /// Nobody could read anything.
    #[error("it names nobody")]
    Nobody,
}

/// The list, one reader a line: `NAME:$2y$...`, a password as `htpasswd -B` writes it, or `NAME:sha256:HEX`, a token by
/// its hash. A name may stand there twice, while its secret is being replaced. Empty lines and those that start with
/// `#` are passed over.
pub(crate) struct Readers {
    tokens: Vec<(String, Sha256)>,
    passwords: Vec<(String, String)>,
    /// The passwords that were verified since the list was read.
    pub(crate) verified: Verified,
}

pub(crate) fn parse(texts: &[Vec<u8>]) -> Result<Readers, FileError> {
    let text = texts.first().map(Vec::as_slice).unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| ReadersError::Text)?;
    Ok(Readers::parse(text)?)
}

impl Readers {
    fn parse(text: &str) -> Result<Self, ReadersError> {
        let mut readers = Self {
            tokens: Vec::new(),
            passwords: Vec::new(),
            verified: Verified::default(),
        };
        let lines = text.lines().map(str::trim).zip(1..);
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
            readers.add(line, number)?;
        }
        match readers.tokens.is_empty() && readers.passwords.is_empty() {
            true => Err(ReadersError::Nobody),
            false => Ok(readers),
        }
    }

    fn add(&mut self, line: &str, number: usize) -> Result<(), ReadersError> {
        let wrong = ReadersError::Line(number);
        let (name, secret) = line.split_once(':').ok_or(wrong.clone())?;
        if name.is_empty() {
            return Err(wrong);
        }
        let name = name.to_owned();
        if let Some(hex) = secret.strip_prefix("sha256:") {
            self.tokens.push((name, hex.parse().map_err(|_| wrong)?));
            return Ok(());
        }
        match secret.parse::<bcrypt::HashParts>() {
            Err(_) => Err(wrong),
            Ok(parts) if parts.get_cost() > COST_MAX => Err(ReadersError::Cost(number)),
            Ok(_) => {
                self.passwords.push((name, secret.to_owned()));
                Ok(())
            }
        }
    }

    /// Whether it is somebody's token; with a name, that one's. All are compared, so that the time tells nothing.
    pub(crate) fn has_token(&self, name: Option<&str>, token: &[u8]) -> bool {
        let hash = Sha256::of(token);
        let same = |(owner, secret): &(String, Sha256)| {
            let named = name.map_or(Choice::from(1), |name| owner.as_bytes().ct_eq(name.as_bytes()));
            named & secret.as_bytes().ct_eq(hash.as_bytes())
        };
        self.tokens
            .iter()
            .fold(Choice::from(0), |found, entry| found | same(entry))
            .into()
    }

    /// The hashes of a name's passwords, and whether the name is known. For one that is not, somebody else's hash is to
    /// be verified in vain, so that the time tells nothing.
    pub(crate) fn passwords(&self, name: &str) -> (Vec<String>, bool) {
        let own = |(owner, hash): &(String, String)| (owner == name).then(|| hash.clone());
        let own: Vec<_> = self.passwords.iter().filter_map(own).collect();
        if own.is_empty() {
            (
                self.passwords
                    .first()
                    .map(|(_, hash)| hash.clone())
                    .into_iter()
                    .collect(),
                false,
            )
        } else {
            (own, true)
        }
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Readers(<{} redacted>)", self.tokens.len() + self.passwords.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_hashes() {
        let hash = bcrypt::hash("pass", 4).unwrap();
        let token = Sha256::of(b"token");
        let text = format!("# readers\n\nalice:{hash}\n  robot:sha256:{token}\nalice:{hash}\n");
        let readers = Readers::parse(&text).unwrap();
        assert_eq!(readers.passwords("alice"), (vec![hash.clone(), hash.clone()], true));
        assert_eq!(readers.passwords("nobody"), (vec![hash.clone()], false));
        for (name, token, expected) in [
            (None, "token", true),
            (Some("robot"), "token", true),
            (Some("alice"), "token", false),
            (None, "other", false),
            (None, "", false),
        ] {
            assert_eq!(readers.has_token(name, token.as_bytes()), expected, "{name:?} {token}");
        }
        let debug = format!("{readers:?}");
        assert!(!debug.contains(&hash) && !debug.contains("alice"), "{debug}");
    }

    #[test]
    fn anything_else_is_refused_and_not_repeated() {
        let costly = bcrypt::hash("pass", 4).unwrap().replacen("$04$", "$15$", 1);
        for (text, error) in [
            ("", ReadersError::Nobody),
            ("# nobody\n", ReadersError::Nobody),
            ("alice", ReadersError::Line(1)),
            ("\nalice:plain", ReadersError::Line(2)),
            (":$2y$05$x", ReadersError::Line(1)),
            ("alice:$apr1$x$y", ReadersError::Line(1)),
            ("alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", ReadersError::Line(1)),
            ("robot:sha256:abc", ReadersError::Line(1)),
            (&format!("alice:{costly}"), ReadersError::Cost(1)),
        ] {
            let found = Readers::parse(text).unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!found.to_string().contains("alice"));
        }
    }
}
