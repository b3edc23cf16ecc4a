//! See `fuzz::snapshot`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(snapshot);
