//! See `fuzz::archive`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(archive);
