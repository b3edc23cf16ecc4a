//! Seeds by the hundred, every fault at every operation, and the same run twice.

mod late;
mod same;
mod seeds;
mod systematic;
