//! Tests of the rendering of a catalog from its lines.

mod borders;
mod kit;
mod known;
mod limits;
mod published;
mod rendering;
