//! Program of the target `overlay`; its checks are in `fuzz::overlay`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(overlay);
