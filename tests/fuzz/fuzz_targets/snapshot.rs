//! Program of the target `snapshot`; its checks are in `fuzz::snapshot`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(snapshot);
