//! Every row of the contract, from request to status, headers and body.

mod changes;
mod documents;
mod errors;
mod faults;
mod fixture;
mod forgeries;
mod large;
mod metas;
mod openapi;
mod ranges;
mod registry;
mod rows;
mod states;
mod traversal;
mod whole;
mod world;
