use std::collections::BTreeMap;

use serde_json::Value;

/// JSON in the one form that is signed: keys in the order of their bytes, no spaces.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            // Sorted here, because how the library keeps them is a feature that any crate can switch.
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            let members = members
                .into_iter()
                .map(|(key, value)| format!("{}:{}", scalar(&Value::from(key.as_str())), canonical(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(value),
    }
}

fn scalar(value: &Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spaces_do_not_matter() {
        let value: Value = serde_json::from_str(r#"{ "b": [1, {"y": null, "x": "\u00e9\""}], "a": true }"#).unwrap();
        assert_eq!(canonical(&value), r#"{"a":true,"b":[1,{"x":"é\"","y":null}]}"#);
    }
}
