//! Memory as an oracle: what is allocated is counted.

use allocation_counter::measure;

/// Runs a function, which may hold at most `limit` bytes at any time more than before.
///
/// # Panics
/// If it holds more.
pub(crate) fn within<T>(limit: usize, about: &str, function: impl FnOnce() -> T) -> T {
    let mut result = None;
    let cost = measure(|| result = Some(function()));
    assert!(
        cost.bytes_max <= limit as u64,
        "{} bytes for {about}, more than {limit}",
        cost.bytes_max
    );
    result.expect("the function was called")
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    #[should_panic(expected = "101 bytes for a list, more than 100")]
    fn within_refuses_one_byte_more() {
        within(100, "a list", || vec![0_u8; 101].len());
    }
}
