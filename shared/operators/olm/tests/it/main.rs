//! Tests of what lines mean to OLM.

mod cases;
mod changes;
mod mutations;
mod properties;
mod required_images;
mod search;
mod validate;
