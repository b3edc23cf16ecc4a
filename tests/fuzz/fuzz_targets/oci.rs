//! Program of the target `oci`; its checks are in `fuzz::oci`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(oci);
