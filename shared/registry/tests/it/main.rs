//! Tests of records, graphs and answers.

mod contents;
mod graph;
mod recorded;
mod recorder;
mod replies;
