//! Program of the target `git`; its checks are in `fuzz::git`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(git);
