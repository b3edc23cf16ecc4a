//! Program of the target `indexignore`; its checks are in `fuzz::ignore`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(indexignore);
