//! Program of the target `index`; its checks are in `fuzz::index`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(index);
