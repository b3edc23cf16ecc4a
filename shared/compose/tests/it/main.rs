//! Tests of the public interface.

mod compositions;
mod properties;
mod rows;
mod support;
