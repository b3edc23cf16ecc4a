//! See `fuzz::oci`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(oci);
