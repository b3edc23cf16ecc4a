//! Program of the target `manifest`; its checks are in `fuzz::manifest`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(manifest);
