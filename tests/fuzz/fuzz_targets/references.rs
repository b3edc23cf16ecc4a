//! Program of the target `references`; its checks are in `fuzz::references`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(references);
