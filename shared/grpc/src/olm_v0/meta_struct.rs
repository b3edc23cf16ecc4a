use prost_types::{ListValue, Struct, Value, value::Kind};
use serde_json::Value as Json;

use super::go::Wrong;
use crate::AnswerError;

/// Returns the line of a Meta as a message. Numbers become floating point, as in every `google.protobuf.Struct`.
///
/// # Errors
/// Fails if the line is no object, or nested deeper than 128 levels.
pub fn meta_struct(line: &[u8]) -> Result<Struct, AnswerError> {
    let error = |reason: Wrong| AnswerError::Bundle {
        bundle: "custom schema".to_owned(),
        reason,
    };
    match serde_json::from_slice(line).map_err(|parse| error(parse.to_string()))? {
        Json::Object(fields) => Ok(object(fields)),
        _ => Err(error("the line is no object".to_owned())),
    }
}

fn object(fields: serde_json::Map<String, Json>) -> Struct {
    Struct {
        fields: fields.into_iter().map(|(name, field)| (name, value(field))).collect(),
    }
}

fn value(json: Json) -> Value {
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(value),
        // Every number of JSON has a nearest floating-point number.
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(value).collect(),
        }),
        Json::Object(fields) => Kind::StructValue(object(fields)),
    };
    Value { kind: Some(kind) }
}
