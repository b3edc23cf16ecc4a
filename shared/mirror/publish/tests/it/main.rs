//! Tests of polls: what is published, and what is refused.

mod files;
mod hold;
mod hostile;
mod ring;
mod site;
mod slow;
mod validation;
