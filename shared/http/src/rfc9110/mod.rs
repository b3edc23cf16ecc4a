//! RFC 9110 as pure functions of header fields: no store, no async.

mod accept;
mod conditional;
#[cfg(test)]
mod cost;
mod list;
mod query;
mod range;
mod validators;

pub(crate) use accept::{negotiate, suffix};
pub(crate) use conditional::{Precondition, evaluate, if_range_holds};
pub(crate) use query::{decode, metas_filter, search, since};
pub(crate) use range::{Ranges, parse_ranges};
pub(crate) use validators::{Modified, Tag, Validators};
