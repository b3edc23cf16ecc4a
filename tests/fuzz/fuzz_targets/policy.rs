//! Program of the target `policy`; its checks are in `fuzz::policy`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(policy);
