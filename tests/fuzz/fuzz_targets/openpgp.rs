//! See `fuzz::openpgp`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(openpgp);
