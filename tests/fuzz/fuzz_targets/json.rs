//! See `fuzz::json`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(json);
