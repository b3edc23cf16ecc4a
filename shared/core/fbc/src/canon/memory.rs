//! Counts the memory that the documents of a chunk take, before it is taken.

use work::Budget;

use crate::{FbcLimits, error::FbcErrorKind};

/// Chunks below this size may take as much memory as one of this size, in bytes. The stacks of a
/// document of the greatest depth, 3 MB, fit into it, and the aliases of a small document.
const SMALL_CHUNK: usize = 512 << 10;

/// Smallest step by which a list grows, in items.
const STEP_MIN: usize = 64;

/// Counter of memory. What does not fit is not taken: the caller looks at [`Self::check`] after
/// each part of a document.
pub(crate) struct MemoryMeter {
    limit: usize,
    /// Limit for each byte of the chunk, for the error.
    ratio: usize,
    used: usize,
    exceeded: bool,
    budget: Budget,
}

impl MemoryMeter {
    /// Counts the memory for a chunk of this size. Its own bytes are taken. [`Self::check`] fails
    /// once the work of `budget` is stopped.
    pub(crate) fn new(limits: &FbcLimits, chunk: usize, budget: &Budget) -> Self {
        Self {
            limit: limits.memory_of(chunk),
            ratio: limits.memory_ratio,
            used: chunk,
            exceeded: false,
            budget: budget.clone(),
        }
    }

    /// Counts bytes that are about to be taken. Returns false if they do not fit.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        if self.fits(bytes) {
            self.used += bytes;
        } else {
            self.exceeded = true;
        }
        !self.exceeded
    }

    /// Counts bytes that were freed.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    fn fits(&self, bytes: usize) -> bool {
        self.used
            .checked_add(bytes)
            .is_some_and(|used| used <= self.limit)
    }

    /// Fails if something did not fit, or if the caller has stopped the work.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), FbcErrorKind> {
        if self.exceeded || self.budget.is_stopped() {
            return Err(self.error());
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn error(&self) -> FbcErrorKind {
        if self.budget.is_stopped() {
            return FbcErrorKind::Stopped;
        }
        FbcErrorKind::limit("memoryRatio", self.ratio)
    }

    /// Appends an item, if it fits.
    #[inline]
    pub(crate) fn push<T>(&mut self, list: &mut Vec<T>, item: T) {
        if self.reserve(list, 1) {
            list.push(item);
        }
    }

    /// Makes place for more items. Returns false if they do not fit.
    #[inline]
    pub(crate) fn reserve<T>(&mut self, list: &mut Vec<T>, more: usize) -> bool {
        list.capacity() - list.len() >= more || self.grow(list, more)
    }

    #[cold]
    fn grow<T>(&mut self, list: &mut Vec<T>, more: usize) -> bool {
        let size = size_of::<T>();
        let free = list.capacity() - list.len();
        // In steps of a twelfth, so that at most so much stays unused, and each item is moved a
        // constant number of times. Large lists are remapped rather than moved by common
        // allocators.
        let steps = [
            (list.capacity() / 12).max(STEP_MIN),
            list.capacity() / 48,
            0,
        ]
        .map(|step| step.max(more));
        // While items move, both the old and the new memory are held.
        let fitting = steps.into_iter().find(|step| {
            let moved = list.capacity().saturating_add(*step).checked_mul(size);
            moved.is_some_and(|bytes| self.fits(bytes))
        });
        let Some(step) = fitting else {
            self.exceeded = true;
            return false;
        };
        self.used += step * size;
        list.reserve_exact(free + step);
        true
    }
}

/// Canonical text that takes memory only as far as it fits. The rest is dropped, and the meter says
/// so.
pub(crate) struct Text {
    pub(super) bytes: Vec<u8>,
    pub(crate) meter: MemoryMeter,
}

impl Text {
    /// Creates an empty text that will have about this many bytes.
    pub(crate) fn new(mut meter: MemoryMeter, size: usize) -> Self {
        let mut bytes = Vec::new();
        meter.reserve(&mut bytes, size);
        Self { bytes, meter }
    }

    #[inline]
    pub(crate) fn push(&mut self, byte: u8) {
        self.meter.push(&mut self.bytes, byte);
    }

    #[inline]
    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        if self.meter.reserve(&mut self.bytes, bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

impl FbcLimits {
    /// Returns the memory that a chunk of this size may take while it is parsed, in bytes, the
    /// chunk included. At most 4 GiB.
    pub fn memory_of(&self, chunk: usize) -> usize {
        let memory = self.memory_ratio.saturating_mul(chunk.max(SMALL_CHUNK));
        // Offsets into the text have 32 bits, so that the list of entries stays small.
        memory.min(u32::MAX as usize)
    }
}

/// Returns an offset in 32 bits. [`MemoryMeter`] keeps every list below that.
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use work::Budget;

    use super::{MemoryMeter, SMALL_CHUNK};
    use crate::FbcLimits;

    #[test]
    fn meter_accepts_exactly_its_limit() {
        let limits = FbcLimits {
            memory_ratio: 2,
            ..FbcLimits::default()
        };
        let mut meter = MemoryMeter::new(&limits, SMALL_CHUNK, &Budget::default());
        assert!(meter.take(SMALL_CHUNK));
        meter.give_back(1);
        assert!(meter.take(1) && meter.check().is_ok());
        assert!(!meter.take(1));
        let error = meter.check().unwrap_err();
        assert_eq!(error.to_string(), "exceeds the limit memoryRatio of 2");
    }
}
