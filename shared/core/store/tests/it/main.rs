//! Tests of the stores. The conformance suite is a part of the crate.

mod conformance;
mod ext;
mod folder;
mod processes;
mod s3;
