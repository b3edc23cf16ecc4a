use std::collections::HashMap;

use crate::Random;

/// Characters of texts that hardly compress.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// First and last distance of eight distance symbols (RFC 1951, section 3.2.5).
const DISTANCES: [(usize, usize); 8] = [
    (1537, 2048),
    (2049, 3072),
    (3073, 4096),
    (4097, 6144),
    (6145, 8192),
    (8193, 12_288),
    (12_289, 16_384),
    (16_385, 24_576),
];
/// Lengths of one length symbol.
const LENGTHS: (usize, usize) = (35, 42);
/// Window of deflate, in bytes, and more.
const WINDOW: usize = 33_000;

/// Choices of lines that deflate to the end of a segment before the segment ends.
#[derive(Clone, Copy, Debug)]
pub struct BorderLines {
    /// Seed of all that is random.
    pub seed: u64,
    /// Number of bytes at the start of the lines that refer to others before them.
    pub filled: usize,
    /// Distance of the last match but one. Default: 16,385, whose 13 extra bits are zeros.
    pub zeros: usize,
    /// Distance of the last match. Default: 24,576, whose 13 extra bits are ones.
    pub ones: usize,
}

impl BorderLines {
    /// Chooses as the attack did.
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            filled: 60_000,
            zeros: 16_385,
            ones: 24_576,
        }
    }

    /// Returns two canonical lines of a Package, of 110 kB. Their deflated bytes end, for some
    /// seeds, with the bytes `00 00 ff ff` on a byte border and then the code that ends their
    /// block. `None` for seeds whose texts do not fit.
    ///
    /// Matches of `LENGTHS` are the most frequent symbol of the block, so their code is zeros.
    /// Eight distance symbols of equal frequency have three bits each, so that the last one is
    /// ones. The last match but one has zeros in its distance, the last one has ones.
    pub fn lines(&self, package: &str) -> Option<Vec<u8>> {
        let head = format!("{{\"package\":\"{package}\",\"schema\":\"x\",\"t\":[\"");
        let mut text = Text::new(self.seed);
        text.put_used(head.as_bytes());
        text.noise(26_000);
        text.matches(26_000 + self.filled);
        text.noise(text.bytes.len() + 4);
        let end = text.bytes.len() + 31;
        text.noise(end);
        text.put(b"\"]}\n");
        let first = text.bytes.len();
        text.used[end - 2..first].fill(true);
        text.put_used(head.as_bytes());
        // The last match copies the end of the first line, the one before it bytes that are kept.
        let last = first + self.ones - LENGTHS.0;
        let kept = last.checked_sub(LENGTHS.0 + self.zeros)?;
        text.matches(kept - 3);
        let from = text.bytes.len();
        text.noise(kept + 40);
        let until = text.bytes.len();
        text.used[from..until].fill(true);
        text.matches(last - LENGTHS.0 - 3);
        text.noise(last - LENGTHS.0);
        text.end(kept, first)
    }
}

/// Bytes whose matches are chosen: four bytes that were there before come in matches only.
struct Text {
    bytes: Vec<u8>,
    /// Bytes that no match may copy again.
    used: Vec<bool>,
    /// End of the last place of each four bytes.
    last: HashMap<[u8; 4], usize>,
    random: Random,
    matches: usize,
}

impl Text {
    fn new(seed: u64) -> Self {
        Self {
            bytes: Vec::new(),
            used: vec![false; 400_000],
            last: HashMap::new(),
            random: Random::new(seed),
            matches: 0,
        }
    }

    /// Returns a number from `from` to `to`.
    fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.random.below(to - from + 1)
    }

    fn put(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.bytes.push(*byte);
            if let Some(four) = self.bytes.last_chunk() {
                self.last.insert(*four, self.bytes.len());
            }
        }
    }

    fn put_used(&mut self, bytes: &[u8]) {
        let from = self.bytes.len();
        self.put(bytes);
        self.used[from..from + bytes.len()].fill(true);
    }

    /// True if no four bytes at the end of the text with `bytes` behind it were there before.
    fn is_fresh(&self, bytes: &[u8]) -> bool {
        let start = self.bytes.len().saturating_sub(3);
        let seam = [&self.bytes[start..], bytes].concat();
        seam.windows(4).all(|four| {
            let four = four.try_into().expect("a window of four");
            let before = self.last.get::<[u8; 4]>(four);
            before.is_none_or(|before| self.bytes.len() - before >= WINDOW)
        })
    }

    fn character(&mut self) {
        loop {
            let at = self.between(0, CHARACTERS.len() - 1);
            let character = CHARACTERS[at];
            if self.is_fresh(&[character]) {
                self.put(&[character]);
                return;
            }
        }
    }

    /// Adds characters until the text has `end` bytes.
    fn noise(&mut self, end: usize) {
        while self.bytes.len() < end {
            self.character();
        }
    }

    /// Adds matches of all distance symbols in turn, and characters between them.
    fn matches(&mut self, end: usize) {
        while self.bytes.len() + 50 < end {
            let (near, far) = DISTANCES[self.matches % DISTANCES.len()];
            let is_copied = (0..60).any(|_| {
                let distance = self.between(near, far);
                self.copy(distance)
            });
            self.matches += usize::from(is_copied);
            let between = self.between(6, 14);
            self.noise(self.bytes.len() + between);
        }
        self.noise(end);
    }

    /// Adds a match of one length symbol, and a character that ends it. Returns false if the bytes
    /// at this distance do not make one.
    fn copy(&mut self, distance: usize) -> bool {
        let length = self.between(LENGTHS.0, LENGTHS.1);
        let at = self.bytes.len();
        let Some(from) = at.checked_sub(distance).filter(|from| *from > 0) else {
            return false;
        };
        let until = from + length;
        let is_used = self.used[from - 1..=until].iter().any(|used| *used);
        // A match that began one byte earlier would be longer.
        if until >= at || is_used || self.bytes[from - 1] == self.bytes[at - 1] {
            return false;
        }
        let copied = self.bytes[from..until].to_vec();
        if !self.is_fresh(&copied[..3]) {
            return false;
        }
        self.used[from - 1..=until].fill(true);
        let following = self.bytes[until];
        self.put(&copied);
        loop {
            let end = self.bytes.len();
            self.character();
            if self.bytes[end] != following {
                return true;
            }
            self.bytes.truncate(end);
        }
    }

    /// Adds the two last matches: from `kept`, and the end of the first line.
    fn end(mut self, kept: usize, first: usize) -> Option<Vec<u8>> {
        let length = LENGTHS.0;
        let one = self.bytes[kept..kept + length].to_vec();
        let other = self.bytes[first - length..first].to_vec();
        let at = self.bytes.len();
        let is_exact = self.bytes[kept - 1] != self.bytes[at - 1]
            && self.bytes[kept + length] != other[0]
            && self.bytes[first - length - 1] != one[length - 1];
        if !is_exact || !self.is_fresh(&one[..1]) {
            return None;
        }
        self.bytes.extend(one);
        self.bytes.extend(other);
        Some(self.bytes)
    }
}
