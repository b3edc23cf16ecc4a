//! Program of the target `archive`; its checks are in `fuzz::archive`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(archive);
