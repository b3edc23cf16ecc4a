//! See `fuzz::policy`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(policy);
