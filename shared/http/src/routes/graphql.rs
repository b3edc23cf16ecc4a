//! Queries of GraphQL, as catalogd answers them, and by GET for caches.

use graphql::{AnswerForm, GraphQlRequest};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, VARY},
};
use model::{CachePolicy, Encoding};

use super::RouteCall;
use crate::{
    error::ApiError,
    payload::Payload,
    respond::Representation,
    rfc9110::{Tag, graphql_parameters, negotiate, suffix},
};

/// Media type of answers to GraphQL over HTTP, which have statuses.
const GRAPHQL_JSON: &str = "application/graphql-response+json";

pub(super) async fn query(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let name = call.catalog()?;
    let request = match call.content {
        Some(content) => GraphQlRequest::from_body(content),
        None => {
            let [query, variables, operation] = graphql_parameters(call.query)?;
            GraphQlRequest::from_parameters(&query, &variables, &operation)
        }
    };
    let request = request.map_err(ApiError::GraphQlRequest)?;
    let state = call.app.catalogs.find(&name).await?;
    let form = form(call.headers);
    let encoding = negotiate(call.headers, &Encoding::ALL).ok_or(ApiError::NotAcceptable)?;
    let query = call.app.query(state, request, form).await?;
    let mut representation = Representation {
        tag: Tag::with_suffix(query.identity(), &format!("-graphql{}", suffix(encoding))),
        extra: Some(Box::new((VARY, HeaderValue::from_static("Accept, Accept-Encoding")))),
        encoding,
        content_type: match form {
            AnswerForm::NullData => "application/json",
            AnswerForm::NoData => GRAPHQL_JSON,
        },
        ..Representation::empty_document(CachePolicy::Pointer)
    };
    if call.wants_body(&representation) {
        let plain = call.app.answer_to(&query).await?;
        // In the other form every answer is 200, as in catalogd.
        if graphql::is_refusal(&plain) {
            representation.status = StatusCode::BAD_REQUEST;
        }
        representation.payload = Payload::Bytes(call.app.encoded_answer(&query, plain, encoding).await?);
    }
    Ok(representation)
}

/// Returns the form of a client that names the media type of GraphQL over HTTP before that of JSON.
fn form(headers: &HeaderMap) -> AnswerForm {
    let values = headers
        .get_all(ACCEPT)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut types = values
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    let first = types.find(|range| {
        [GRAPHQL_JSON, "application/json", "application/*", "*/*"]
            .iter()
            .any(|known| range.eq_ignore_ascii_case(known))
    });
    match first.is_some_and(|first| first.eq_ignore_ascii_case(GRAPHQL_JSON)) {
        true => AnswerForm::NoData,
        false => AnswerForm::NullData,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::absent(&[], AnswerForm::NullData)]
    #[case::json(&["application/json"], AnswerForm::NullData)]
    #[case::any(&["*/*"], AnswerForm::NullData)]
    #[case::other(&["text/html"], AnswerForm::NullData)]
    #[case::graphql(&["application/graphql-response+json"], AnswerForm::NoData)]
    #[case::parameters(&["Application/GraphQL-Response+JSON; charset=utf-8"], AnswerForm::NoData)]
    #[case::first(&["application/graphql-response+json, application/json;q=0.9"], AnswerForm::NoData)]
    #[case::second(&["application/json, application/graphql-response+json"], AnswerForm::NullData)]
    #[case::two_fields(&["text/html", "application/graphql-response+json, */*"], AnswerForm::NoData)]
    fn form_is_the_first_that_the_client_names(#[case] values: &[&str], #[case] expected: AnswerForm) {
        let values = values.iter().map(|value| (ACCEPT, value.parse().unwrap()));
        assert_eq!(form(&values.collect()), expected);
    }
}
