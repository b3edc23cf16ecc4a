//! Helpers of the end-to-end tests.

pub(crate) mod binary;
pub(crate) mod bundles;
pub(crate) mod cargo;
pub(crate) mod catalogs;
pub(crate) mod http;
pub(crate) mod site;
pub(crate) mod work;

use std::thread::sleep;
use std::time::Duration;

/// Waits until a second after all publications so far. They have whole seconds, and of two in one
/// second the later one has the next second.
pub(crate) fn wait_for_next_second() {
    sleep(Duration::from_millis(2100));
}
