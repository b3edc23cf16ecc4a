use std::{fmt::Display, ops::Range};

use crate::StoreError;

/// Cuts a requested range to an object of `size` bytes. Without a range, returns that of the whole object.
pub(crate) fn resolve(range: Option<&Range<u64>>, size: u64, key: &dyn Display) -> Result<Range<u64>, StoreError> {
    match range {
        None => Ok(0..size),
        Some(range) if range.start < size => Ok(range.start..range.end.clamp(range.start, size)),
        Some(_) => Err(StoreError::range_not_satisfiable(key, size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolve_range_beyond_the_end_is_cut() {
        for (range, expected) in [
            (None, 0..10),
            (Some(0..10), 0..10),
            (Some(3..7), 3..7),
            (Some(9..u64::MAX), 9..10),
            (Some(5..5), 5..5),
            (Some(Range { start: 5, end: 2 }), 5..5),
        ] {
            assert_eq!(resolve(range.as_ref(), 10, &"k").unwrap(), expected, "{range:?}");
        }
    }

    #[test]
    fn resolve_start_at_or_beyond_the_size_is_an_error() {
        for (range, size) in [(0..0, 0), (0..1, 0), (10..11, 10), (11..12, 10)] {
            let error = resolve(Some(&range), size, &"k").unwrap_err();
            assert!(
                matches!(error, StoreError::RangeNotSatisfiable { size: found, .. } if found == size),
                "{error}"
            );
        }
    }
}
