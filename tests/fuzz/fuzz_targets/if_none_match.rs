//! Program of the target `if_none_match`; its checks are in `fuzz::if_none_match`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(if_none_match);
