//! Every route of the contract, from request to status, headers and body.

mod answers;
mod changes;
mod codings;
mod conditions;
mod documents;
mod errors;
mod faults;
mod fixture;
mod forgeries;
mod large;
mod lists;
mod memory;
mod metas;
mod openapi;
mod page;
mod registry;
mod rows;
mod search;
mod sockets;
mod states;
mod traversal;
mod trusted;
mod versions;

mod world;
