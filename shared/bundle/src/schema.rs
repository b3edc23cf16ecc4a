//! Schemas of CustomResourceDefinitions, compared by the rules of crdify with the settings of OLM v1.
//!
//! Like crdify, it compares each property of the old schema with that of the same path, without the properties in it. Schemas in
//! `additionalProperties`, `anyOf` and the like are compared on their own and also as a part of the schema around them, where
//! no rule knows them: each change in them is unsafe.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::UnsafeChange;

/// Longest value in a text about a change, in characters.
const VALUE_CHARS: usize = 60;

/// Form of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A value that is the same as none if it is empty or false.
    Plain,
    Any,
    /// A schema, a list of them, or true or false in place of one.
    Schema,
    /// An object of schemas.
    Named,
}

/// Rule by which a change of a keyword is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Every change is safe.
    Safe,
    /// The schemas in it are compared, each by its path.
    Children,
    /// Every change is unsafe.
    Equal,
    /// Unsafe if there was none or if a value is gone.
    Enum,
    /// Unsafe if there was none or if it is lower.
    Maximum,
    /// Unsafe if there was none or if it is higher.
    Minimum,
    /// Unsafe if a name is new.
    Required,
    /// Every change is unsafe, because crdify has no rule for the keyword.
    Unhandled,
}

#[derive(Debug, Clone, Copy)]
struct Keyword {
    name: &'static str,
    form: Form,
    check: Check,
}

/// All keywords that Kubernetes reads (`JSONSchemaProps` of apiextensions.k8s.io/v1). It ignores others.
const KEYWORDS: &[(Form, Check, &[&str])] = &[
    (Form::Plain, Check::Safe, &["description"]),
    (Form::Named, Check::Children, &["properties"]),
    (Form::Schema, Check::Children, &["items"]),
    (Form::Plain, Check::Equal, &["type", "pattern", "nullable"]),
    (Form::Any, Check::Equal, &["default"]),
    (Form::Plain, Check::Enum, &["enum"]),
    (Form::Plain, Check::Required, &["required"]),
    (
        Form::Plain,
        Check::Maximum,
        &["maximum", "maxItems", "maxLength", "maxProperties"],
    ),
    (
        Form::Plain,
        Check::Minimum,
        &["minimum", "minItems", "minLength", "minProperties"],
    ),
    (
        Form::Schema,
        Check::Unhandled,
        &[
            "additionalItems",
            "additionalProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ],
    ),
    (
        Form::Named,
        Check::Unhandled,
        &["definitions", "dependencies", "patternProperties"],
    ),
    (
        Form::Plain,
        Check::Unhandled,
        &[
            "$schema",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "format",
            "id",
            "multipleOf",
        ],
    ),
    (
        Form::Plain,
        Check::Unhandled,
        &["title", "uniqueItems", "x-kubernetes-embedded-resource"],
    ),
    (
        Form::Plain,
        Check::Unhandled,
        &["x-kubernetes-int-or-string", "x-kubernetes-list-map-keys"],
    ),
    (Form::Plain, Check::Unhandled, &["x-kubernetes-validations"]),
    (
        Form::Any,
        Check::Unhandled,
        &[
            "example",
            "externalDocs",
            "x-kubernetes-list-type",
            "x-kubernetes-map-type",
        ],
    ),
    // False is another value than none.
    (Form::Any, Check::Unhandled, &["x-kubernetes-preserve-unknown-fields"]),
];

fn keywords() -> impl Iterator<Item = Keyword> {
    let rows = KEYWORDS.iter();
    rows.flat_map(|(form, check, names)| {
        names.iter().map(|&name| Keyword {
            name,
            form: *form,
            check: *check,
        })
    })
}

/// Comparison of two schemas.
#[derive(Debug, Default)]
pub(crate) struct SchemaComparison {
    /// Version, or two of them, in each change.
    pub(crate) version: String,
    /// True if a property that the new schema lacks is compared with an empty one. False if its absence is a change by itself.
    pub(crate) ignores_removal: bool,
    pub(crate) changes: BTreeSet<UnsafeChange>,
}

impl SchemaComparison {
    /// Adds the unsafe changes of a property and of all properties in it.
    pub(crate) fn compare(&mut self, property: &str, old: &Value, new: &Value) {
        let mut unhandled = Vec::new();
        for keyword in keywords().filter(|keyword| keyword.refuses(old, new)) {
            let change = format!("{}: {} -> {}", keyword.name, keyword.shown(old), keyword.shown(new));
            match keyword.check {
                Check::Unhandled => unhandled.push(change),
                _ => self.add(property, keyword.name, change),
            }
        }
        if !unhandled.is_empty() {
            self.add(property, "unhandled", unhandled.join("; "));
        }
        let others: BTreeMap<String, &Value> = children(new).collect();
        for (segment, child) in children(old) {
            let property = format!("{property}{segment}");
            match others.get(&segment) {
                None if !self.ignores_removal => {
                    self.add(
                        &property,
                        "existingFieldRemoval",
                        "the field and all in it are gone".to_owned(),
                    );
                }
                other => self.compare(&property, child, other.copied().unwrap_or(&Value::Null)),
            }
        }
    }

    fn add(&mut self, property: &str, rule: &'static str, change: String) {
        self.changes.insert(UnsafeChange {
            version: self.version.clone(),
            property: property.to_owned(),
            rule,
            change,
            ..UnsafeChange::default()
        });
    }
}

impl Keyword {
    /// Returns the value, or `None` for one that Kubernetes takes for none.
    fn of(self, schema: &Value) -> Option<&Value> {
        schema.get(self.name).filter(|value| match (self.form, value) {
            (_, Value::Null) | (Form::Plain, Value::Bool(false)) => false,
            (Form::Plain, Value::String(text)) => !text.is_empty(),
            (Form::Plain | Form::Schema, Value::Array(items)) => !items.is_empty(),
            (Form::Named, Value::Object(schemas)) => !schemas.is_empty(),
            _ => true,
        })
    }

    fn shown(self, schema: &Value) -> String {
        match self.of(schema) {
            None => "none".to_owned(),
            Some(Value::String(text)) => model::text::line(text, VALUE_CHARS),
            Some(value) => model::text::line(&value.to_string(), VALUE_CHARS),
        }
    }

    /// Returns the schemas in the value, each with the end of its path.
    fn children(self, schema: &Value) -> Vec<(String, &Value)> {
        let name = self.name;
        match (self.form, self.of(schema)) {
            (Form::Schema, Some(one @ Value::Object(_))) => vec![(format!(".{name}"), one)],
            (Form::Schema, Some(Value::Array(schemas))) => {
                let schemas = schemas.iter().enumerate();
                schemas.map(|(at, schema)| (format!(".{name}[{at}]"), schema)).collect()
            }
            (Form::Named, Some(Value::Object(schemas))) => {
                let path = |key: &str| match self.check {
                    Check::Children => format!(".{key}"),
                    _ => format!(".{name}[{key}]"),
                };
                // A dependency may also be a list of names.
                let schemas = schemas.iter().filter(|(_, schema)| !schema.is_array());
                schemas.map(|(key, schema)| (path(key), schema)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if the values, with all that is in them, mean the same to Kubernetes.
    fn is_same(self, old: &Value, new: &Value) -> bool {
        let (ones, others) = (self.children(old), self.children(new));
        if ones.is_empty() && others.is_empty() {
            let number = self.number(old);
            return self.of(old) == self.of(new) || number.is_some() && number == self.number(new);
        }
        let is_same = |((path, one), (other_path, other)): (&(String, &Value), &(String, &Value))| {
            path == other_path && keywords().all(|keyword| keyword.is_same(one, other))
        };
        ones.len() == others.len() && ones.iter().zip(&others).all(is_same)
    }

    /// Returns true if the values differ in an unsafe way.
    fn refuses(self, old: &Value, new: &Value) -> bool {
        let limit = |is_tighter: fn(f64, f64) -> bool| match (self.number(old), self.number(new)) {
            (Some(old), Some(new)) => is_tighter(old, new),
            (old, new) => old.is_none() && new.is_some(),
        };
        let (before, after) = (self.values(old), self.values(new));
        match self.check {
            Check::Safe | Check::Children => false,
            Check::Equal | Check::Unhandled => !self.is_same(old, new),
            Check::Enum => !before.is_subset(&after) || before.is_empty() && !after.is_empty(),
            Check::Required => !after.is_subset(&before),
            Check::Maximum => limit(|old, new| new < old),
            Check::Minimum => limit(|old, new| new > old),
        }
    }

    fn number(self, schema: &Value) -> Option<f64> {
        self.of(schema)?.as_f64()
    }

    /// Returns the items of a list as JSON.
    fn values(self, schema: &Value) -> BTreeSet<String> {
        let items = self.of(schema).and_then(Value::as_array).into_iter().flatten();
        items.map(Value::to_string).collect()
    }
}

/// Returns all schemas directly below one, each with the end of its path.
fn children(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    keywords().flat_map(|keyword| keyword.children(schema))
}

/// Returns the path of a schema with a reference, which Kubernetes forbids, if there is one.
pub(crate) fn reference(property: &str, schema: &Value) -> Option<String> {
    if schema.get("$ref").is_some() {
        return Some(property.to_owned());
    }
    children(schema).find_map(|(segment, child)| reference(&format!("{property}{segment}"), child))
}
