//! Program of the target `ranges`; its checks are in `fuzz::ranges`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(ranges);
