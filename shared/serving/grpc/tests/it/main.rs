//! Tests of the registry API: answers to the requests that opm answered, and calls over real
//! connections.

mod answers;
mod catalogs;
mod client;
mod contents;
mod cost;
mod fixture;
mod health;
mod outdated;
mod recorder;
mod reflection;
mod streams;
