//! Everything that needs a registry, a layout or a folder.
//!
//! One binary, so that it is linked once.

mod archive;
mod auth;
mod disk;
mod download;
mod faults;
mod git;
mod hostile_registry;
mod images;
mod kit;
mod layers;
mod limits;
mod mirrored;
#[cfg(target_os = "linux")]
mod network;
mod push;
mod signatures;
mod tls;
mod web;
