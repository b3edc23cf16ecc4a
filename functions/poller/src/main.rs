//! The poller.

fn main() {}
