//! Authentication: users, their passwords and tokens.

mod authenticator;
mod credentials;
mod list;
mod verified;

pub(crate) use authenticator::Authenticator;
pub(crate) use list::COST_MAX;
