//! Program of the target `accept_encoding`; its checks are in `fuzz::accept_encoding`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(accept_encoding);
