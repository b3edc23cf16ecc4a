#![doc = include_str!("../README.md")]

mod gc;
mod rollback;
mod verify;

pub use gc::{
    GcError, GcMetrics, GcOptions, GcReport, GcStep, NextStep, Retention, UnreadableState, collect_regularly, gc,
};
pub use rollback::{RollbackOptions, RollbackTarget, rollback};
pub use verify::{Finding, IntegrityCheck, ObjectProblem, Verification, check_entry, verify};
