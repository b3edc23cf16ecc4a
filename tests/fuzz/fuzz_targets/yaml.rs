//! Program of the target `yaml`; its checks are in `fuzz::yaml`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(yaml);
