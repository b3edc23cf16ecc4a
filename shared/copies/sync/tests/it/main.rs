//! Copies, carried out on stores that fail at every step, from servers that lie, through archives
//! that were altered.
//!
//! `tests/fuzz` has archives that were forged by a party who knows the format.

mod archives;
mod copies;
mod first_seen;
mod kit;
mod lists;
mod origins;
mod read_stores;
mod repairs;
mod servers;
