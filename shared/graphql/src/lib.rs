#![doc = include_str!("../README.md")]

mod budget;
mod data;
mod error;
mod execute;
mod go;
mod introspection;
mod limits;
mod objects;
mod plan;
mod request;
mod scalar;
mod scan;
mod types;

pub use data::{CatalogData, LineStream, MetaPage};
pub use error::{DataError, RequestError, TypesError};
pub use execute::{AnswerForm, is_refusal};
pub use limits::QueryLimits;
pub use request::{GraphQlRequest, QUERY_MAX};
pub use types::{CatalogTypes, GRAPHQL_VERSION};
