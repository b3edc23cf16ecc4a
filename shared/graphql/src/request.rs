use async_graphql::Variables;
use serde::Deserialize;

use crate::error::RequestError;

/// Maximum size of a query, in bytes, as in catalogd. Its documented queries have a few hundred.
pub const QUERY_MAX: usize = 100_000;

/// A query with its variables, as a request has them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphQlRequest {
    pub(crate) query: String,
    pub(crate) variables: Variables,
    pub(crate) operation: Option<String>,
}

/// Fields of a request's body. Others, such as `extensions`, are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestBody {
    query: Option<String>,
    #[serde(default)]
    variables: Variables,
    operation_name: Option<String>,
}

impl GraphQlRequest {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// Each [`RequestError`] but that for variables alone.
    pub fn from_body(body: &[u8]) -> Result<Self, RequestError> {
        let body: RequestBody = serde_json::from_slice(body).map_err(|error| RequestError::Body(error.to_string()))?;
        Self::checked(body.query.unwrap_or_default(), body.variables, body.operation_name)
    }

    /// Reads the parameters of a GET: the query, JSON of the variables, and the name of the operation.
    ///
    /// # Errors
    /// Each [`RequestError`] but that for bodies.
    pub fn from_parameters(query: &str, variables: &str, operation: &str) -> Result<Self, RequestError> {
        let variables = match variables {
            "" => Variables::default(),
            text => serde_json::from_str(text).map_err(|error| RequestError::Variables(error.to_string()))?,
        };
        Self::checked(query.to_owned(), variables, Some(operation.to_owned()))
    }

    fn checked(query: String, variables: Variables, operation: Option<String>) -> Result<Self, RequestError> {
        if query.is_empty() {
            return Err(RequestError::Empty);
        }
        if query.len() > QUERY_MAX {
            return Err(RequestError::TooLong(QUERY_MAX));
        }
        Ok(Self {
            query,
            variables,
            // Some clients send an empty name for the only operation.
            operation: operation.filter(|name| !name.is_empty()),
        })
    }

    /// Returns bytes that no other request has, for the key of a cache.
    pub fn identity(&self) -> Vec<u8> {
        let variables = serde_json::to_string(&self.variables).unwrap_or_default();
        let operation = self.operation.as_deref().unwrap_or_default();
        let mut identity = Vec::with_capacity(self.query.len() + variables.len() + operation.len() + 24);
        for text in [self.query.as_str(), &variables, operation] {
            // With the lengths, (`a`, `bc`) and (`ab`, `c`) are different bytes.
            identity.extend_from_slice(&(text.len() as u64).to_be_bytes());
            identity.extend_from_slice(text.as_bytes());
        }
        identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_body_reads_query_variables_and_operation() {
        let body = br#"{"query":"q","variables":{"a":1},"operationName":"b","extensions":{}}"#;
        let request = GraphQlRequest::from_body(body).unwrap();
        let parameters = GraphQlRequest::from_parameters("q", r#"{ "a": 1 }"#, "b").unwrap();
        assert_eq!(request, parameters);
        assert_eq!(request.identity(), parameters.identity());
        let plain = GraphQlRequest::from_body(br#"{"query":"q","variables":null,"operationName":""}"#).unwrap();
        assert_eq!(plain, GraphQlRequest::from_parameters("q", "", "").unwrap());
        assert_ne!(plain.identity(), request.identity());
    }

    #[test]
    fn from_body_refuses_what_has_no_query() {
        for body in ["", "[]", "{", r#"{"query":1}"#, r#"{"query":"q","variables":[]}"#] {
            let error = GraphQlRequest::from_body(body.as_bytes()).unwrap_err();
            assert!(matches!(error, RequestError::Body(_)), "{body}: {error}");
        }
        for body in ["{}", r#"{"query":""}"#, r#"{"query":null}"#] {
            assert_eq!(
                GraphQlRequest::from_body(body.as_bytes()),
                Err(RequestError::Empty),
                "{body}"
            );
        }
        let error = GraphQlRequest::from_parameters("q", "1", "").unwrap_err();
        assert!(matches!(error, RequestError::Variables(_)), "{error}");
    }

    #[test]
    fn from_parameters_takes_exactly_the_longest_query() {
        let longest = "a".repeat(QUERY_MAX);
        assert!(GraphQlRequest::from_parameters(&longest, "", "").is_ok());
        let longer = longest + "a";
        assert_eq!(
            GraphQlRequest::from_parameters(&longer, "", ""),
            Err(RequestError::TooLong(QUERY_MAX))
        );
    }
}
