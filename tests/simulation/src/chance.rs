use std::hash::{Hash, Hasher};
use std::ops::Range;

use testkit::Random;

/// Chance as a pure function of its subject: no order of events, and no thread, can change an
/// answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns another chance, for `about`.
    pub(crate) fn of(self, about: impl Hash) -> Self {
        let mut mixer = Mixer(mixed(self.0));
        about.hash(&mut mixer);
        Self(mixer.finish())
    }

    pub(crate) fn number(self, range: Range<u64>) -> u64 {
        range.start + self.0 % (range.end - range.start)
    }

    pub(crate) fn one_in(self, many: u64) -> bool {
        many > 0 && self.0.is_multiple_of(many)
    }

    pub(crate) fn fraction(self) -> f64 {
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn pick<T: Copy>(self, from: &[T]) -> T {
        from[self.number(0..from.len() as u64) as usize]
    }
}

/// FNV-1a. Its result is equal on every machine and in every version. It is mixed, because its low
/// bits alone are poor.
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        mixed(self.0)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Mixes a word, as SplitMix64 does (Steele, Lea, Flood 2014).
fn mixed(word: u64) -> u64 {
    Random::new(word).number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let hits = (0..10_000)
            .filter(|at| Chance::new(*at).of("x").one_in(10))
            .count();
        assert!((850..1150).contains(&hits), "{hits}");
    }
}
