//! Tests of the public interface.

mod compositions;
mod files;
mod hostile;
mod includes;
mod properties;
mod rows;
mod support;
