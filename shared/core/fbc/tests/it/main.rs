//! Tests of the way from FBC files to canonical lines.

mod canonical;
mod common;
mod limits;
mod properties;
