//! Program of the target `openpgp`; its checks are in `fuzz::openpgp`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(openpgp);
