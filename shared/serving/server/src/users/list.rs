use model::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::error::{COST_MAX, FileError};
use crate::users::verified::VerifiedLogins;

/// Users with the hashes of their tokens and passwords. They cannot be printed.
///
/// A name may occur twice, while its secret is being replaced.
#[derive(Default)]
pub(crate) struct UserList {
    tokens: Vec<(String, Sha256)>,
    passwords: Vec<(String, String)>,
    /// Passwords that were verified since the list was read.
    pub(crate) verified: VerifiedLogins,
}

impl UserList {
    /// Parses the only file of a user list. One user a line; empty lines and lines that begin with
    /// `#` are ignored.
    pub(crate) fn parse(texts: &[Vec<u8>]) -> Result<Self, FileError> {
        let text = texts.first().map(Vec::as_slice).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|_| FileError::UserEncoding)?;
        let mut users = Self::default();
        let lines = text.lines().map(str::trim).zip(1..);
        for (line, number) in lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')) {
            users.add(line, number)?;
        }
        if users.tokens.is_empty() && users.passwords.is_empty() {
            return Err(FileError::NoUsers);
        }
        Ok(users)
    }

    fn add(&mut self, line: &str, number: usize) -> Result<(), FileError> {
        let wrong = || FileError::UserLine(number);
        let (name, secret) = line.split_once(':').ok_or_else(wrong)?;
        if name.is_empty() {
            return Err(wrong());
        }
        let name = name.to_owned();
        if let Some(hex) = secret.strip_prefix("sha256:") {
            self.tokens.push((name, hex.parse().map_err(|_| wrong())?));
            return Ok(());
        }
        let hash: bcrypt::HashParts = secret.parse().map_err(|_| wrong())?;
        if hash.get_cost() > COST_MAX {
            return Err(FileError::UserCost(number));
        }
        self.passwords.push((name, secret.to_owned()));
        Ok(())
    }

    /// Returns the owner of a token in the list, who is `name` if one is given.
    pub(crate) fn token_owner(&self, name: Option<&str>, token: &[u8]) -> Option<&str> {
        let hash = Sha256::of(token);
        let mut found = None;
        // All are compared, in constant time, so that the duration of a request tells nothing.
        for (owner, secret) in &self.tokens {
            let is_named = match name {
                Some(name) => owner.as_bytes().ct_eq(name.as_bytes()),
                None => Choice::from(1),
            };
            let is_right = is_named & secret.as_bytes().ct_eq(hash.as_bytes());
            if bool::from(is_right) {
                found = Some(owner.as_str());
            }
        }
        found
    }

    /// Returns true if the password is one of this name. Blocks for as long as bcrypt takes.
    pub(crate) fn has_password(&self, name: &str, password: &[u8]) -> bool {
        let mut candidates = self.candidates(name).into_iter();
        let matching = candidates.find(|(_, hash)| bcrypt::verify(password, hash).unwrap_or(false));
        matching.is_some_and(|(owner, _)| owner == name)
    }

    /// Returns the users whose password hashes are verified for a name: those of the name, else
    /// another one.
    fn candidates(&self, name: &str) -> Vec<&(String, String)> {
        let own: Vec<_> = self
            .passwords
            .iter()
            .filter(|(owner, _)| owner == name)
            .collect();
        if own.is_empty() {
            // An unknown name costs as much time as a wrong password, so that the duration does not
            // tell which names exist.
            return self.passwords.iter().take(1).collect();
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The duration does not tell which names exist.
    #[test]
    fn user_list_verifies_a_password_for_an_unknown_name_too() {
        let hash = bcrypt::hash("pass", 4).unwrap();
        let users = UserList::parse(&[format!("alice:{hash}\nalice:{hash}\n").into()]).unwrap();
        assert_eq!(
            ["alice", "unknown"].map(|name| users.candidates(name).len()),
            [2, 1]
        );
    }

    #[test]
    fn user_list_bad_line_is_refused_and_not_quoted() {
        let costly = bcrypt::hash("pass", 4).unwrap().replacen("$04$", "$15$", 1);
        let costly = format!("alice:{costly}");
        for (text, expected) in [
            ("", "names no users"),
            ("# comment\n", "names no users"),
            ("alice", "line 1 of the user list is neither"),
            ("\nalice:plain", "line 2 of the user list is neither"),
            (":$2y$05$x", "line 1 of the user list is neither"),
            ("alice:$apr1$x$y", "line 1 of the user list is neither"),
            (
                "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=",
                "line 1 of the user list is neither",
            ),
            ("robot:sha256:abc", "line 1 of the user list is neither"),
            (
                &costly,
                "line 1 of the user list has a bcrypt hash of a cost above 14",
            ),
        ] {
            let error = UserList::parse(&[text.into()]).err().unwrap().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("alice"), "{error}");
        }
    }
}
