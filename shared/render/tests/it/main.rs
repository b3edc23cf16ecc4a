//! Tests of the rendering of a catalog from its lines.

mod limits;
mod rendering;
