//! Program of the target `records`; its checks are in `fuzz::records`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(records);
