//! Tests of polls: what is published, and what is refused.

mod files;
mod hostile;
mod site;
mod slow;
mod validation;
