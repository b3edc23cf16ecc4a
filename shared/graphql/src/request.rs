use async_graphql::Variables;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::RequestError;

/// Maximum size of a query, in bytes, as in catalogd. Its documented queries have a few hundred.
pub const QUERY_MAX: usize = 100_000;

/// Maximum size of the variables of a query, in bytes of JSON.
const VARIABLES_MAX: usize = 100_000;

/// A query with its variables, as a request has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GraphQlRequest {
    pub(crate) query: String,
    /// JSON of an object; empty if there are none. It is parsed when the query has its turn: the values take many times as much
    /// memory.
    variables: String,
    pub(crate) operation: Option<String>,
}

/// Fields of a request's body. Others, such as `extensions`, are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestBody<'a> {
    query: Option<String>,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
    operation_name: Option<String>,
}

impl GraphQlRequest {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// Each [`RequestError`] but that for variables alone.
    pub fn from_body(body: &[u8]) -> Result<Self, RequestError> {
        let body: RequestBody<'_> =
            serde_json::from_slice(body).map_err(|error| RequestError::Body(error.to_string()))?;
        let variables = body.variables.map_or("", RawValue::get);
        Self::checked(body.query.unwrap_or_default(), variables, body.operation_name)
    }

    /// Reads the parameters of a GET: the query, JSON of the variables, and the name of the operation.
    ///
    /// # Errors
    /// Each [`RequestError`] but that for bodies.
    pub fn from_parameters(query: &str, variables: &str, operation: &str) -> Result<Self, RequestError> {
        let variables = match variables {
            "" | "null" => "",
            text => serde_json::from_str::<&RawValue>(text)
                .map_err(|error| RequestError::Variables(error.to_string()))?
                .get(),
        };
        Self::checked(query.to_owned(), variables, Some(operation.to_owned()))
    }

    fn checked(query: String, variables: &str, operation: Option<String>) -> Result<Self, RequestError> {
        if query.is_empty() {
            return Err(RequestError::Empty);
        }
        for (what, found, most) in [
            ("query", query.len(), QUERY_MAX),
            ("variables", variables.len(), VARIABLES_MAX),
        ] {
            if found > most {
                return Err(RequestError::TooLong { what, most });
            }
        }
        if !variables.is_empty() && !variables.starts_with('{') {
            return Err(RequestError::Variables("they are something else".to_owned()));
        }
        Ok(Self {
            query,
            variables: variables.to_owned(),
            // Some clients send an empty name for the only operation.
            operation: operation.filter(|name| !name.is_empty()),
        })
    }

    /// Returns the variables.
    ///
    /// # Errors
    /// A message for the client, such as about a name that GraphQL does not allow.
    pub(crate) fn variables(&self) -> Result<Variables, String> {
        match self.variables.as_str() {
            "" => Ok(Variables::default()),
            text => serde_json::from_str(text).map_err(|error| format!("the variables cannot be read: {error}")),
        }
    }

    /// Returns bytes that no other request has, for the key of a cache.
    pub fn identity(&self) -> Vec<u8> {
        let operation = self.operation.as_deref().unwrap_or_default();
        let mut identity = Vec::with_capacity(self.query.len() + self.variables.len() + operation.len() + 24);
        for text in [self.query.as_str(), &self.variables, operation] {
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
        let parameters = GraphQlRequest::from_parameters("q", r#" {"a":1} "#, "b").unwrap();
        assert_eq!(request, parameters);
        assert_eq!(request.identity(), parameters.identity());
        let plain = GraphQlRequest::from_body(br#"{"query":"q","variables":null,"operationName":""}"#).unwrap();
        assert_eq!(plain, GraphQlRequest::from_parameters("q", "null", "").unwrap());
        assert_eq!(plain.variables(), Ok(Variables::default()));
        assert_ne!(plain.identity(), request.identity());
    }

    #[test]
    fn from_body_refuses_what_has_no_query() {
        for body in ["", "[]", "{", r#"{"query":1}"#, r#"{"query":"q","variables":{]}"#] {
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
        for variables in ["1", "[]", "{", "{}{}"] {
            let error = GraphQlRequest::from_parameters("q", variables, "").unwrap_err();
            assert!(matches!(error, RequestError::Variables(_)), "{variables}: {error}");
        }
    }

    #[test]
    fn from_parameters_takes_exactly_the_longest_query_and_variables() {
        let query = |length: usize| GraphQlRequest::from_parameters(&"a".repeat(length), "", "");
        assert!(query(QUERY_MAX).is_ok());
        assert!(matches!(
            query(QUERY_MAX + 1),
            Err(RequestError::TooLong { what: "query", .. })
        ));
        let variables = |length: usize| {
            let text = format!("{{\"a\":\"{}\"}}", "b".repeat(length - 8));
            GraphQlRequest::from_parameters("q", &text, "")
        };
        assert!(variables(VARIABLES_MAX).is_ok());
        assert!(matches!(
            variables(VARIABLES_MAX + 1),
            Err(RequestError::TooLong { what: "variables", .. })
        ));
    }
}
