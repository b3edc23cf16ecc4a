//! Journeys through the public doors: the binary as a user runs it, and the rooms as the doors wire them.

mod access;
mod arrows;
mod binary;
mod config;
mod consume;
mod copies;
mod demo;
mod http;
mod keeping;
mod licences;
mod notify;
mod protocol;
mod readme;
mod registry;
mod rollback;
mod secrets;
mod server;
mod signed;
mod support;
mod updates;
mod verified;
