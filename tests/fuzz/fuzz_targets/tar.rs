//! See `fuzz::tar`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(tar);
