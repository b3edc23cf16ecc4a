//! Program of the target `json`; its checks are in `fuzz::json`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(json);
