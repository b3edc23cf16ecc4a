//! Fields of Metas, as GraphQL names them.

mod names;

pub use names::{field_name, query_field, type_name};
