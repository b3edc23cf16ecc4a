//! Program of the target `current`; its checks are in `fuzz::current`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(current);
