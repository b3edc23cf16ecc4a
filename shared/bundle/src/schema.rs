//! Schemas of CustomResourceDefinitions, compared by the rules of crdify with the settings of OLM v1.
//!
//! Like crdify, it compares each property of the old schema with that of the same path, without the properties in it. Schemas in
//! `additionalProperties`, `anyOf` and the like are compared on their own and also as a part of the schema around them, where
//! no rule knows them: each change in them is unsafe.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Number, Value};

use crate::{BundleError, manifest::Field};

/// Longest value in a text about a change, in characters.
const VALUE_CHARS: usize = 60;

/// JSON type of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Flag,
    Number,
    List,
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

/// Keyword of a schema.
struct Keyword {
    name: &'static str,
    form: Form,
    check: Check,
}

const fn keyword(name: &'static str, form: Form, check: Check) -> Keyword {
    Keyword { name, form, check }
}

/// All keywords that Kubernetes reads (`JSONSchemaProps` of apiextensions.k8s.io/v1). It ignores others.
const KEYWORDS: &[Keyword] = &[
    keyword("description", Form::Text, Check::Safe),
    keyword("properties", Form::Named, Check::Children),
    keyword("items", Form::Schema, Check::Children),
    keyword("type", Form::Text, Check::Equal),
    keyword("pattern", Form::Text, Check::Equal),
    keyword("nullable", Form::Flag, Check::Equal),
    keyword("default", Form::Any, Check::Equal),
    keyword("enum", Form::List, Check::Enum),
    keyword("maximum", Form::Number, Check::Maximum),
    keyword("maxItems", Form::Number, Check::Maximum),
    keyword("maxLength", Form::Number, Check::Maximum),
    keyword("maxProperties", Form::Number, Check::Maximum),
    keyword("minimum", Form::Number, Check::Minimum),
    keyword("minItems", Form::Number, Check::Minimum),
    keyword("minLength", Form::Number, Check::Minimum),
    keyword("minProperties", Form::Number, Check::Minimum),
    keyword("required", Form::List, Check::Required),
    keyword("additionalItems", Form::Schema, Check::Unhandled),
    keyword("additionalProperties", Form::Schema, Check::Unhandled),
    keyword("allOf", Form::Schema, Check::Unhandled),
    keyword("anyOf", Form::Schema, Check::Unhandled),
    keyword("oneOf", Form::Schema, Check::Unhandled),
    keyword("not", Form::Schema, Check::Unhandled),
    keyword("definitions", Form::Named, Check::Unhandled),
    keyword("dependencies", Form::Named, Check::Unhandled),
    keyword("patternProperties", Form::Named, Check::Unhandled),
    keyword("id", Form::Text, Check::Unhandled),
    keyword("$schema", Form::Text, Check::Unhandled),
    keyword("title", Form::Text, Check::Unhandled),
    keyword("format", Form::Text, Check::Unhandled),
    keyword("multipleOf", Form::Number, Check::Unhandled),
    keyword("exclusiveMaximum", Form::Flag, Check::Unhandled),
    keyword("exclusiveMinimum", Form::Flag, Check::Unhandled),
    keyword("uniqueItems", Form::Flag, Check::Unhandled),
    keyword("externalDocs", Form::Any, Check::Unhandled),
    keyword("example", Form::Any, Check::Unhandled),
    keyword("x-kubernetes-embedded-resource", Form::Flag, Check::Unhandled),
    keyword("x-kubernetes-int-or-string", Form::Flag, Check::Unhandled),
    keyword("x-kubernetes-list-map-keys", Form::List, Check::Unhandled),
    keyword("x-kubernetes-list-type", Form::Any, Check::Unhandled),
    keyword("x-kubernetes-map-type", Form::Any, Check::Unhandled),
    // False is another value than none.
    keyword("x-kubernetes-preserve-unknown-fields", Form::Any, Check::Unhandled),
    keyword("x-kubernetes-validations", Form::List, Check::Unhandled),
];

/// Unsafe change of one property by one rule.
#[derive(Debug, PartialEq)]
pub(crate) struct SchemaChange<'a> {
    /// Path of the property as crdify writes it, such as `^.spec.size`.
    pub(crate) property: String,
    /// Name of crdify's validation.
    pub(crate) rule: &'static str,
    keywords: Vec<KeywordChange<'a>>,
}

#[derive(Debug, PartialEq)]
struct KeywordChange<'a> {
    name: &'static str,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
}

/// Comparison of two schemas.
#[derive(Default)]
pub(crate) struct SchemaComparison<'a> {
    /// True if a property that the new schema lacks is compared with an empty one. False if its absence is a change by itself.
    pub(crate) ignores_removal: bool,
    pub(crate) changes: Vec<SchemaChange<'a>>,
}

impl<'a> SchemaComparison<'a> {
    /// Adds the unsafe changes of a property and of all properties in it.
    pub(crate) fn compare(&mut self, property: &str, old: &'a Value, new: &'a Value) {
        let mut unhandled = Vec::new();
        let judged = KEYWORDS.iter().filter(|keyword| keyword.is_judged());
        for keyword in judged.filter(|keyword| !keyword.is_same(old, new)) {
            let change = KeywordChange {
                name: keyword.name,
                old: keyword.of(old),
                new: keyword.of(new),
            };
            if keyword.check == Check::Unhandled {
                unhandled.push(change);
            } else if keyword.check.refuses(&change) {
                self.push(property, keyword.name, vec![change]);
            }
        }
        if !unhandled.is_empty() {
            self.push(property, "unhandled", unhandled);
        }
        let others: BTreeMap<String, &Value> = children(new).collect();
        for (segment, child) in children(old) {
            let property = format!("{property}{segment}");
            match others.get(&segment) {
                None if !self.ignores_removal => self.push(&property, "existingFieldRemoval", Vec::new()),
                other => self.compare(&property, child, other.copied().unwrap_or(&Value::Null)),
            }
        }
    }

    fn push(&mut self, property: &str, rule: &'static str, keywords: Vec<KeywordChange<'a>>) {
        self.changes.push(SchemaChange {
            property: property.to_owned(),
            rule,
            keywords,
        });
    }
}

impl SchemaChange<'_> {
    /// Returns the old and the new value of each keyword, shortened.
    pub(crate) fn text(&self) -> String {
        let shown = |value: Option<&Value>| match value {
            None => "none".to_owned(),
            Some(Value::String(text)) => model::text::line(text, VALUE_CHARS),
            Some(value) => model::text::line(&value.to_string(), VALUE_CHARS),
        };
        let keyword = |change: &KeywordChange<'_>| {
            let (old, new) = (shown(change.old), shown(change.new));
            format!("{}: {old} -> {new}", change.name)
        };
        if self.keywords.is_empty() {
            return "the field and all in it are gone".to_owned();
        }
        self.keywords.iter().map(keyword).collect::<Vec<_>>().join("; ")
    }
}

impl Keyword {
    fn is_judged(&self) -> bool {
        !matches!(self.check, Check::Safe | Check::Children)
    }

    /// Returns the value, or `None` for one that Kubernetes takes for none.
    fn of<'a>(&self, schema: &'a Value) -> Option<&'a Value> {
        schema.get(self.name).filter(|value| match (self.form, value) {
            (_, Value::Null) => false,
            (Form::Flag, Value::Bool(flag)) => *flag,
            (Form::Text, Value::String(text)) => !text.is_empty(),
            (Form::List | Form::Schema, Value::Array(items)) => !items.is_empty(),
            (Form::Named, Value::Object(schemas)) => !schemas.is_empty(),
            _ => true,
        })
    }

    /// Returns the schemas in the value, each with the end of its path.
    fn children<'a>(&self, schema: &'a Value) -> Vec<(String, &'a Value)> {
        let name = self.name;
        let is_schema = |value: &Value| value.is_object() || value.is_null();
        match (self.form, self.of(schema)) {
            (Form::Schema, Some(one @ Value::Object(_))) => vec![(format!(".{name}"), one)],
            (Form::Schema, Some(Value::Array(schemas))) => {
                let schemas = schemas.iter().enumerate();
                schemas.map(|(at, schema)| (format!(".{name}[{at}]"), schema)).collect()
            }
            (Form::Named, Some(Value::Object(schemas))) => {
                let schemas = schemas.iter().filter(|(_, schema)| is_schema(schema));
                let path = |key: &str| match self.check {
                    Check::Children => format!(".{key}"),
                    _ => format!(".{name}[{key}]"),
                };
                schemas.map(|(key, schema)| (path(key), schema)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if the values, with all that is in them, mean the same to Kubernetes.
    fn is_same(&self, old: &Value, new: &Value) -> bool {
        let (Some(one), Some(other)) = (self.of(old), self.of(new)) else {
            return self.of(old) == self.of(new);
        };
        let (ones, others) = (self.children(old), self.children(new));
        if ones.is_empty() && others.is_empty() {
            return number(Some(one)).map_or(one == other, |one| Some(one) == number(Some(other)));
        }
        let is_same = |((path, one), (other_path, other)): (&(String, &Value), &(String, &Value))| {
            path == other_path && KEYWORDS.iter().all(|keyword| keyword.is_same(one, other))
        };
        ones.len() == others.len() && ones.iter().zip(&others).all(is_same)
    }
}

impl Check {
    /// Returns true if the change, which is one, is unsafe.
    fn refuses(self, KeywordChange { old, new, .. }: &KeywordChange<'_>) -> bool {
        let limit = |is_tighter: fn(f64, f64) -> bool| match (number(*old), number(*new)) {
            (None, Some(_)) => true,
            (Some(old), Some(new)) => is_tighter(old, new),
            (_, None) => false,
        };
        match self {
            Self::Safe | Self::Children => false,
            Self::Equal | Self::Unhandled => true,
            Self::Enum => old.is_none() || !values(*old).is_subset(&values(*new)),
            Self::Required => !values(*new).is_subset(&values(*old)),
            Self::Maximum => limit(|old, new| new < old),
            Self::Minimum => limit(|old, new| new > old),
        }
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_number).and_then(Number::as_f64)
}

/// Returns the items of a list as JSON.
fn values(list: Option<&Value>) -> BTreeSet<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.map(Value::to_string).collect()
}

/// Returns all schemas directly below one, each with the end of its path.
fn children(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    KEYWORDS.iter().flat_map(|keyword| keyword.children(schema))
}

/// Refuses schemas that Kubernetes cannot read, and references, which it forbids.
pub(crate) fn check(schema: &Field<'_>) -> Result<(), BundleError> {
    if !schema.child("$ref")?.value.is_null() {
        return Err(schema
            .child("$ref")?
            .error("is forbidden in a CustomResourceDefinition"));
    }
    for Keyword { name, form, .. } in KEYWORDS {
        let field = schema.child(name)?;
        match (form, field.value) {
            (_, Value::Null) | (Form::Any, _) | (Form::Schema, Value::Bool(_)) => {}
            (Form::Text, _) => field.text().map(drop)?,
            (Form::Flag, _) => field.flag().map(drop)?,
            (Form::Number, value) if value.is_number() => {}
            (Form::Number, _) => return Err(field.error("must be a number")),
            (Form::List, _) => field.items().map(drop)?,
            (Form::Schema, Value::Array(_)) => field.items()?.iter().try_for_each(check)?,
            (Form::Schema, _) => check(&field)?,
            (Form::Named, Value::Object(schemas)) => {
                for (key, schema) in schemas {
                    // Only a dependency may be something else: a list of names.
                    if *name != "dependencies" || schema.is_object() {
                        check(&field.child(key)?)?;
                    }
                }
            }
            (Form::Named, _) => return Err(field.error("must be an object")),
        }
    }
    Ok(())
}
