//! Tests of records, graphs and answers.

mod graph;
mod recorded;
mod recorder;
mod replies;
