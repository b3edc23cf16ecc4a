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

/// Waits until the next second: publications have whole seconds.
pub(crate) fn wait_for_next_second() {
    sleep(Duration::from_millis(1100));
}
