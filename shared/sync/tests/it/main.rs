//! Copies, carried out on stores that fail at every step, from servers that lie, through archives that were altered.

mod archives;
mod copies;
mod forgeries;
mod kit;
mod lists;
mod origins;
mod repairs;
mod servers;
