//! Program of the target `volume`; its checks are in `fuzz::volume`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(volume);
