//! See `fuzz::index`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(index);
