//! Hundreds of seeds, every fault at every operation, and each run twice.

mod copies;
mod determinism;
mod seeds;
mod systematic;
