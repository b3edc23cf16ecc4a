//! What a program says at a terminal: tables for people, JSON for programs, progress, and exit codes.
//!
//! Text of a catalog is foreign. It cannot change the terminal, whichever function prints it.

mod exit;
mod output;
mod table;

pub use exit::Exit;
pub use output::*;
pub use table::{print_marked, print_rows, wrapped};
