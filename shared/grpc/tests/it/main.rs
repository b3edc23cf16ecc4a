//! Tests of the registry API over real connections.

#[path = "../memory/mod.rs"]
mod memory;

mod answers;
mod catalogs;
mod client;
mod fixture;
mod health;
mod reflection;
mod streams;
