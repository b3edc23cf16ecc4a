use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use ring::{
    hmac::{HMAC_SHA256, Key, sign},
    rand::SystemRandom,
};

/// More logins than this are not remembered. bcrypt looks at 72 bytes only, so one password has endless spellings.
const MOST: usize = 1024;

/// Logins that were found right, as marks made with a key that lives as long as the list: nothing here can be turned
/// back into a password, or compared with a list of them.
pub(crate) struct Verified {
    key: Key,
    marks: Mutex<HashSet<[u8; 32]>>,
}

impl Default for Verified {
    fn default() -> Self {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        Self {
            key: key.expect("the system has random numbers"),
            marks: Mutex::default(),
        }
    }
}

impl Verified {
    pub(crate) fn mark(&self, name: &str, password: &[u8]) -> [u8; 32] {
        // A name has no colon (RFC 7617, section 2).
        let tag = sign(&self.key, &[name.as_bytes(), b":", password].concat());
        tag.as_ref().try_into().expect("a SHA-256 has 32 bytes")
    }

    pub(crate) fn holds(&self, mark: &[u8; 32]) -> bool {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).contains(mark)
    }

    pub(crate) fn add(&self, mark: [u8; 32]) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() >= MOST {
            marks.clear();
        }
        marks.insert(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_is_held_and_never_too_much() {
        let verified = Verified::default();
        let mark = verified.mark("alice", b"pass");
        assert!(!verified.holds(&mark));
        verified.add(mark);
        assert!(verified.holds(&verified.mark("alice", b"pass")));
        assert!(!verified.holds(&verified.mark("alice", b"other")));
        assert!(!verified.holds(&Verified::default().mark("alice", b"pass")));
        for number in 0..3000_u32 {
            verified.add(verified.mark("alice", &number.to_be_bytes()));
        }
        assert!(verified.marks.lock().unwrap().len() <= MOST);
    }
}
