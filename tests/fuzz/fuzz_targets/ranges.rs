//! See `fuzz::ranges`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(ranges);
