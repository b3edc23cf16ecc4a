//! End-to-end tests: the binary as a user runs it, and the crates as the entry points wire them.

mod access;

mod archive;
mod binary;
mod compose;
mod composed;
mod config;
mod consume;
mod copies;
mod demo;
mod dependencies;
mod failed;
mod findings;
mod hostile;
mod http;
mod licences;
mod maintenance;
mod misuse;
mod notify;
mod pages;
mod protocol;
mod registry;
mod rollback;
mod secrets;
mod server;
mod signed;
mod support;
mod template;
mod updates;
mod validate;
mod verified;
