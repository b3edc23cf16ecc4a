//! Program of the target `tar`; its checks are in `fuzz::tar`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(tar);
