use model::crypto::hmac::{HMAC_SHA256, Key, sign};
use model::crypto::rand::SystemRandom;
use quick_cache::sync::Cache;

/// Largest number of remembered logins. bcrypt reads 72 bytes only, so one password has endless
/// spellings.
const LOGINS_MAX: usize = 1024;

/// Logins whose password was verified, so that bcrypt need not run for every request.
///
/// It stores HMACs under a random key that lives as long as the user list. They cannot be turned
/// back into passwords or compared with a list of common ones.
pub(crate) struct VerifiedLogins {
    key: Key,
    pub(super) tags: Cache<[u8; 32], ()>,
}

impl Default for VerifiedLogins {
    fn default() -> Self {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self {
            key: key.expect("the system has random numbers"),
            tags: Cache::new(LOGINS_MAX),
        }
    }
}

impl VerifiedLogins {
    /// Returns the tag of a name and a password.
    pub(crate) fn tag(&self, name: &str, password: &[u8]) -> [u8; 32] {
        // A name contains no colon (RFC 7617, section 2), so no two logins have the same text.
        let tag = sign(&self.key, &[name.as_bytes(), b":", password].concat());
        tag.as_ref()
            .try_into()
            .expect("an HMAC-SHA-256 has 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verified_logins_are_bounded_and_of_one_list() {
        let verified = VerifiedLogins::default();
        let tag = verified.tag("alice", b"pass");
        verified.tags.insert(tag, ());
        assert!(verified.tags.get(&tag).is_some());
        let other = VerifiedLogins::default().tag("alice", b"pass");
        assert!(verified.tags.get(&other).is_none());
        for number in 0..3000_u32 {
            verified
                .tags
                .insert(verified.tag("alice", &number.to_be_bytes()), ());
        }
        assert!(verified.tags.len() <= LOGINS_MAX);
    }
}
