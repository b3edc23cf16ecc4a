//! The reader.

fn main() {}
