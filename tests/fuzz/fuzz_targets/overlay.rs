//! See `fuzz::overlay`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(overlay);
