//! Garbage collection next to publications, rollbacks and faults.

mod faults;
mod gc;
mod kit;
mod property;
mod races;
mod stops;
