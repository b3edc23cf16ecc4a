//! See `fuzz::volume`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(volume);
