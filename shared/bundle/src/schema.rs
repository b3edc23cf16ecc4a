//! Schemas of CustomResourceDefinitions, compared by the rules of crdify with the settings of OLM v1.
//!
//! Like crdify, it compares each property of the old schema with that of the same path, without the properties in it. Schemas in
//! `additionalProperties`, `anyOf` and the like are compared on their own and also as a part of the schema around them, where
//! no rule knows them: each change in them is unsafe.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::UnsafeChange;

/// Longest value in a text about a change, in characters.
const VALUE_CHARS: usize = 60;

/// Form of a keyword's value.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A value that is the same as none if it is empty or false.
    Plain,
    Any,
    /// A schema, a list of them, or true or false in place of one.
    Schema,
    /// An object of schemas.
    Named,
}

/// All keywords that Kubernetes reads (`JSONSchemaProps` of apiextensions.k8s.io/v1), by the form of their values.
const KEYWORDS: &[(Form, &str)] = &[
    (Form::Named, "definitions dependencies patternProperties properties"),
    (Form::Schema, "additionalItems additionalProperties allOf anyOf items"),
    (Form::Schema, "not oneOf"),
    (Form::Any, "default example externalDocs x-kubernetes-list-type"),
    (Form::Any, "x-kubernetes-map-type x-kubernetes-preserve-unknown-fields"),
    (
        Form::Plain,
        "$schema description enum exclusiveMaximum exclusiveMinimum",
    ),
    (Form::Plain, "format id maxItems maxLength maxProperties maximum"),
    (Form::Plain, "minItems minLength minProperties minimum multipleOf"),
    (Form::Plain, "nullable pattern required title type uniqueItems"),
    (Form::Plain, "x-kubernetes-embedded-resource x-kubernetes-int-or-string"),
    (Form::Plain, "x-kubernetes-list-map-keys x-kubernetes-validations"),
];

/// Returns all values of a schema that count, by their keywords. Kubernetes ignores other keywords.
fn values(schema: &Value) -> impl Iterator<Item = (&'static str, Form, &Value)> {
    let keywords = KEYWORDS
        .iter()
        .flat_map(|(form, names)| names.split(' ').map(|name| (name, *form)));
    keywords.map(move |(keyword, form)| (keyword, form, &schema[keyword]))
}

/// Returns a schema as Kubernetes keeps it: without the keywords that it ignores and without values that are the same as none.
/// Then two schemas mean the same if they are equal.
pub(crate) fn normal(schema: &Value) -> Value {
    if !schema.is_object() {
        return schema.clone();
    }
    let mut known = Map::new();
    for (keyword, form, value) in values(schema) {
        let value = match (form, value) {
            (Form::Schema, Value::Array(schemas)) => schemas.iter().map(normal).collect(),
            (Form::Schema, schema) => normal(schema),
            (Form::Named, Value::Object(schemas)) => {
                let schemas = schemas.iter().map(|(name, schema)| (name, normal(schema)));
                schemas.collect()
            }
            // 1.0 is 1.
            (_, Value::Number(number)) => {
                let number = number.to_string();
                number.trim_end_matches(".0").parse().map_or(Value::Null, Value::Number)
            }
            (_, value) => value.clone(),
        };
        let is_none = match (form, &value) {
            (_, Value::Null) | (Form::Plain, Value::Bool(false)) => true,
            (Form::Plain, Value::String(text)) => text.is_empty(),
            (Form::Plain | Form::Schema, Value::Array(items)) => items.is_empty(),
            (Form::Named, Value::Object(schemas)) => schemas.is_empty(),
            _ => false,
        };
        if !is_none {
            known.insert(keyword.to_owned(), value);
        }
    }
    known.into()
}

/// Returns all schemas directly below one by the end of their path.
fn children(schema: &Value) -> BTreeMap<String, &Value> {
    let mut found = BTreeMap::new();
    for (keyword, form, value) in values(schema) {
        match (form, value) {
            (Form::Schema, Value::Object(_)) => {
                found.insert(format!(".{keyword}"), value);
            }
            (Form::Schema, Value::Array(schemas)) => {
                let schemas = schemas.iter().enumerate();
                found.extend(schemas.map(|(at, schema)| (format!(".{keyword}[{at}]"), schema)));
            }
            (Form::Named, Value::Object(schemas)) => {
                let path = |name| match keyword {
                    "properties" => format!(".{name}"),
                    keyword => format!(".{keyword}[{name}]"),
                };
                // A dependency may also be a list of names.
                let schemas = schemas.iter().filter(|(_, schema)| !schema.is_array());
                found.extend(schemas.map(|(name, schema)| (path(name), schema)));
            }
            _ => {}
        }
    }
    found
}

/// Returns the path of a schema with a reference, which Kubernetes forbids, if there is one.
pub(crate) fn reference(property: &str, schema: &Value) -> Option<String> {
    if schema.get("$ref").is_some() {
        return Some(property.to_owned());
    }
    let mut children = children(schema).into_iter();
    children.find_map(|(segment, child)| reference(&format!("{property}{segment}"), child))
}

/// Unsafe changes of a CustomResourceDefinition that were found so far.
#[derive(Debug, Default)]
pub(crate) struct SchemaComparison {
    /// Definition and versions of the changes to come.
    pub(crate) place: UnsafeChange,
    /// True if a property that the new schema lacks is compared with an empty one. False if its absence is a change by itself.
    pub(crate) ignores_removal: bool,
    pub(crate) changes: BTreeSet<UnsafeChange>,
}

impl SchemaComparison {
    /// Adds the unsafe changes of a property and of all properties in it. Both schemas are [`normal`].
    pub(crate) fn compare(&mut self, property: &str, old: &Value, new: &Value) {
        let mut unhandled = Vec::new();
        for (keyword, _, before) in values(old) {
            let after = &new[keyword];
            let change = || format!("{keyword}: {} -> {}", shown(before), shown(after));
            match is_unsafe(keyword, before, after) {
                Some(true) => self.add(property, keyword, change()),
                None if before != after => unhandled.push(change()),
                _ => {}
            }
        }
        if !unhandled.is_empty() {
            self.add(property, "unhandled", unhandled.join("; "));
        }
        let others = children(new);
        for (segment, child) in children(old) {
            let property = format!("{property}{segment}");
            match others.get(&segment) {
                Some(other) => self.compare(&property, child, other),
                None if self.ignores_removal => self.compare(&property, child, &Value::Null),
                None => {
                    let change = "the field and all in it are gone".to_owned();
                    self.add(&property, "existingFieldRemoval", change);
                }
            }
        }
    }

    pub(crate) fn add(&mut self, property: &str, rule: &'static str, change: String) {
        let place = self.place.clone();
        self.changes.insert(UnsafeChange {
            property: property.to_owned(),
            rule,
            change,
            ..place
        });
    }
}

/// Judges a change of a keyword by its rule; `None` if crdify has none.
fn is_unsafe(keyword: &str, before: &Value, after: &Value) -> Option<bool> {
    let is_new = before.is_null() && !after.is_null();
    let numbers = before.as_f64().zip(after.as_f64());
    match keyword {
        // Schemas are compared each by its path.
        "description" | "items" | "properties" => Some(false),
        "default" | "nullable" | "pattern" | "type" => Some(before != after),
        "enum" => Some(is_new || !items(before).is_subset(&items(after))),
        "required" => Some(!items(after).is_subset(&items(before))),
        "maximum" | "maxItems" | "maxLength" | "maxProperties" => {
            Some(is_new || numbers.is_some_and(|(before, after)| after < before))
        }
        "minimum" | "minItems" | "minLength" | "minProperties" => {
            Some(is_new || numbers.is_some_and(|(before, after)| after > before))
        }
        _ => None,
    }
}

/// Returns the items of a list as JSON.
fn items(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(Value::to_string).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => model::text::line(text, VALUE_CHARS),
        value => model::text::line(&value.to_string(), VALUE_CHARS),
    }
}
