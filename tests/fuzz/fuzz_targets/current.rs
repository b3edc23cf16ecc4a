//! See `fuzz::current`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(current);
