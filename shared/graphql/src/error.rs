use std::error::Error;

/// Any failure to read the catalog, as the source of its lines reports it.
pub type DataError = Box<dyn Error + Send + Sync>;

/// Reason for which a catalog has no types of GraphQL. Everything else of the catalog stays served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypesError {
    /// Two schemas, or a schema and a type of our own, with one name of a type.
    #[error("{first} and {second} have the same type {name} in GraphQL")]
    TypeName {
        /// Owner of the name.
        first: String,
        /// Second owner of the name.
        second: String,
        /// Name of the type.
        name: String,
    },
    /// Two schemas, or a schema and a field of our own, with one field of the root type.
    #[error("{first} and {second} have the same field {name} in GraphQL")]
    QueryField {
        /// Owner of the field.
        first: String,
        /// Second owner of the field.
        second: String,
        /// Name of the field.
        name: String,
    },
    /// A name that GraphQL does not allow.
    #[error("{owner} is {name:?} in GraphQL, which allows no such name")]
    Name {
        /// Owner of the name.
        owner: String,
        /// Name that is not allowed.
        name: String,
    },
    /// More schemas or fields than the types are made for.
    #[error("the catalog has {found} {of}, and GraphQL is answered for at most {most}")]
    TooMany {
        /// Counted things: `schemas` or `fields`.
        of: &'static str,
        /// Number in the catalog.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// Types that the library does not accept.
    #[error("GraphQL does not allow the types of the catalog: {0}")]
    Invalid(String),
}

/// Reason for which a request has no query that could be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A body that is not a JSON object with a query.
    #[error("the body must be a JSON object with a query and, if needed, variables and operationName: {0}")]
    Body(String),
    /// Variables that are not a JSON object.
    #[error("the variables must be a JSON object: {0}")]
    Variables(String),
    /// A query without text.
    #[error("the query must not be empty")]
    Empty,
    /// A query or variables above the limit.
    #[error("the {what} has more than {most} bytes")]
    TooLong {
        /// The long part of the request.
        what: &'static str,
        /// Maximum size, in bytes.
        most: usize,
    },
}
