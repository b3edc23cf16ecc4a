//! The store against a small S3 in this process, which answers wrongly when told to.

mod conformance;
mod probe;
mod r2;
mod reads;
mod support;
mod writes;
