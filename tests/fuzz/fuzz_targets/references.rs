//! See `fuzz::references`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(references);
