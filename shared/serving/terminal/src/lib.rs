#![doc = include_str!("../README.md")]

mod exit;
mod output;
mod table;
mod wrapping;

pub use exit::Exit;
pub use output::*;
pub use table::{print_marked, print_rows};
pub use wrapping::wrapped;
