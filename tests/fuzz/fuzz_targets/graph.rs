//! Program of the target `graph`; its checks are in `fuzz::graph`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(graph);
