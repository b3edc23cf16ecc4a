//! Fields of Metas, as GraphQL names and types them.

mod names;
mod recorder;

pub use names::{field_name, query_field, type_name};
pub use recorder::FieldsRecorder;
