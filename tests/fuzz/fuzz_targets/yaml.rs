//! See `fuzz::yaml`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(yaml);
