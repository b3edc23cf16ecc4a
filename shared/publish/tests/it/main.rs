//! Tests of polls: what is published, and what is refused.

mod hostile;
mod validation;
