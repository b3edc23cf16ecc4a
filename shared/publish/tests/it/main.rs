//! Tests of publication, its maintenance and change events.

mod hostile;
mod maintenance;
mod notify;
