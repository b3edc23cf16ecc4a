//! See `fuzz::accept_encoding`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(accept_encoding);
