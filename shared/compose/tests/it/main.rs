//! Tests of the public interface.

mod compositions;
mod files;
mod properties;
mod rows;
mod support;
