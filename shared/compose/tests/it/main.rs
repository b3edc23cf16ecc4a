//! Tests of the public interface.

mod rows;
mod support;
