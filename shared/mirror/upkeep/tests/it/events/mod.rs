//! The outbox on the memory store and webhooks against a server in the same process.

mod faults;
mod outbox;
mod webhook;
mod world;
