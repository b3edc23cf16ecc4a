//! Schemas of CustomResourceDefinitions, compared by the rules of crdify with the settings of OLM
//! v1.
//!
//! Like crdify, it compares each property of the old schema with that of the same path, without the
//! properties in it. Schemas in `additionalProperties`, `anyOf` and the like are compared on their
//! own and also as a part of the schema around them, where no rule knows them: each change in them
//! is unsafe. A list that only has another order is the same one, unlike for crdify.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Bounds, Exceeded};

/// Longest value in a text about a change, in characters.
const VALUE_CHARS: usize = 60;

/// Steps for a property: each keyword is looked up in two schemas.
const PROPERTY_STEPS: u64 = 64;

// All keywords that Kubernetes reads (`JSONSchemaProps` of apiextensions.k8s.io/v1). It ignores
// others.
/// Keywords with an object of schemas.
const NAMED: &str = "definitions dependencies patternProperties properties";
/// Keywords with a schema, a list of them, or true or false in place of one.
const SCHEMAS: &str = "additionalItems additionalProperties allOf anyOf items not oneOf";
/// Keywords of which also an empty value or false is another one than none.
const POINTERS: &str = "default example externalDocs x-kubernetes-list-type x-kubernetes-map-type \
                        x-kubernetes-preserve-unknown-fields";
const OTHERS: &str = "$schema description enum exclusiveMaximum exclusiveMinimum format id maxItems maxLength maxProperties \
                      maximum minItems minLength minProperties minimum multipleOf nullable pattern required title type \
                      uniqueItems x-kubernetes-embedded-resource x-kubernetes-int-or-string x-kubernetes-list-map-keys \
                      x-kubernetes-validations";

/// Keywords with a list whose order has no meaning.
const UNORDERED: &str = "allOf anyOf enum oneOf required";
/// Keywords that crdify ignores in the schemas of `oneOf`, but not in those within them.
const NOT_VALIDATING: &str = "description example externalDocs title";

fn keywords() -> impl Iterator<Item = &'static str> {
    let lists = [NAMED, SCHEMAS, POINTERS, OTHERS].into_iter();
    lists.flat_map(|list| list.split(' '))
}

fn is_in(list: &str, keyword: &str) -> bool {
    list.split(' ').any(|other| other == keyword)
}

/// Returns the value of a keyword; null for one that Kubernetes takes for none.
fn value<'a>(schema: &'a Value, keyword: &str) -> &'a Value {
    let value = &schema[keyword];
    let is_none = match value {
        Value::Array(items) => items.is_empty() && !is_in(POINTERS, keyword),
        Value::Object(schemas) => schemas.is_empty() && is_in(NAMED, keyword),
        value => (*value == false || *value == "") && is_in(OTHERS, keyword),
    };
    if is_none { &Value::Null } else { value }
}

/// Returns the schemas in the value of a keyword, each with the end of its path.
fn schemas<'a>(keyword: &str, value: &'a Value) -> Vec<(String, &'a Value)> {
    match value {
        Value::Object(_) if is_in(SCHEMAS, keyword) => vec![(format!(".{keyword}"), value)],
        Value::Array(schemas) if is_in(SCHEMAS, keyword) => schemas
            .iter()
            .enumerate()
            .map(|(at, schema)| (format!(".{keyword}[{at}]"), schema))
            .collect(),
        Value::Object(schemas) if is_in(NAMED, keyword) => schemas
            .iter()
            // A dependency may also be a list of names.
            .filter(|(_, schema)| !schema.is_array())
            .map(|(name, schema)| match keyword {
                "properties" => (format!(".{name}"), schema),
                keyword => (format!(".{keyword}[{name}]"), schema),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns all schemas directly below one, each with the end of its path.
fn children(schema: &Value) -> impl Iterator<Item = (String, &Value)> {
    keywords().flat_map(|keyword| schemas(keyword, value(schema, keyword)))
}

/// Returns the path of a schema with a reference, which Kubernetes forbids, if there is one.
pub(crate) fn reference(property: &str, schema: &Value) -> Option<String> {
    if schema.get("$ref").is_some() {
        return Some(property.to_owned());
    }
    children(schema).find_map(|(segment, child)| reference(&format!("{property}{segment}"), child))
}

/// Returns a schema with the lists in the order of an older one where only their order differs.
fn in_order_of<'a>(
    old: &Value,
    new: &'a Value,
    bounds: &Bounds,
) -> Result<Cow<'a, Value>, Exceeded> {
    let Value::Object(fields) = new else {
        return Ok(Cow::Borrowed(new));
    };
    if old == new {
        return Ok(Cow::Borrowed(new));
    }
    bounds.budget.charge(PROPERTY_STEPS)?;
    let mut ordered = Map::new();
    for (keyword, after) in fields {
        let after = value_in_order_of(keyword, &old[keyword], after, bounds)?;
        ordered.insert(keyword.clone(), after);
    }
    Ok(Cow::Owned(Value::Object(ordered)))
}

/// Returns the value of a keyword in the order of an older one.
fn value_in_order_of(
    keyword: &str,
    before: &Value,
    after: &Value,
    bounds: &Bounds,
) -> Result<Value, Exceeded> {
    match (before, after) {
        (Value::Array(olds), Value::Array(news)) => {
            if is_in(UNORDERED, keyword) && is_permutation(keyword, olds, news, bounds)? {
                return Ok(before.clone());
            }
            if !is_in(SCHEMAS, keyword) {
                return Ok(after.clone());
            }
            let mut ordered = Vec::with_capacity(news.len());
            for (at, new) in news.iter().enumerate() {
                let old = olds.get(at).unwrap_or(&Value::Null);
                ordered.push(in_order_of(old, new, bounds)?.into_owned());
            }
            Ok(Value::Array(ordered))
        }
        (Value::Object(_), Value::Object(_)) if is_in(SCHEMAS, keyword) => {
            Ok(in_order_of(before, after, bounds)?.into_owned())
        }
        (Value::Object(olds), Value::Object(news)) if is_in(NAMED, keyword) => {
            let mut ordered = Map::new();
            for (name, new) in news {
                let old = olds.get(name).unwrap_or(&Value::Null);
                let new = in_order_of(old, new, bounds)?.into_owned();
                ordered.insert(name.clone(), new);
            }
            Ok(Value::Object(ordered))
        }
        _ => Ok(after.clone()),
    }
}

/// Returns true if two lists have the same items.
fn is_permutation(
    keyword: &str,
    olds: &[Value],
    news: &[Value],
    bounds: &Bounds,
) -> Result<bool, Exceeded> {
    if olds.len() != news.len() {
        return Ok(false);
    }
    let mut before = item_texts(keyword, olds, bounds)?;
    let mut after = item_texts(keyword, news, bounds)?;
    before.sort_unstable();
    after.sort_unstable();
    Ok(before == after)
}

/// Returns the items of a list as texts that are equal if the items mean the same.
fn item_texts(keyword: &str, items: &[Value], bounds: &Bounds) -> Result<Vec<String>, Exceeded> {
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        let text = if is_in(SCHEMAS, keyword) {
            schema_text(item, "", bounds)?
        } else {
            item.to_string()
        };
        bounds.budget.charge_bytes(text.len())?;
        texts.push(text);
    }
    Ok(texts)
}

/// Returns a schema without some of its keywords as a text that is equal to that of another one if
/// both mean the same.
fn schema_text(schema: &Value, without: &str, bounds: &Bounds) -> Result<String, Exceeded> {
    if !schema.is_object() {
        return Ok(schema.to_string());
    }
    bounds.budget.charge(PROPERTY_STEPS)?;
    let mut text = String::from("{");
    for keyword in keywords().filter(|keyword| !is_in(without, keyword)) {
        let value = value(schema, keyword);
        if value.is_null() {
            continue;
        }
        text += &format!("{keyword}:");
        match value {
            Value::Array(items) => {
                let mut texts = item_texts(keyword, items, bounds)?;
                if is_in(UNORDERED, keyword) {
                    texts.sort_unstable();
                }
                text += &format!("[{}]", texts.join(","));
            }
            Value::Object(_) if is_in(SCHEMAS, keyword) => {
                text += &schema_text(value, "", bounds)?;
            }
            Value::Object(schemas) if is_in(NAMED, keyword) => {
                for (name, schema) in schemas {
                    text += &format!("{name:?}:{},", schema_text(schema, "", bounds)?);
                }
            }
            value => text += &value.to_string(),
        }
        text.push(';');
    }
    bounds.budget.charge_bytes(text.len())?;
    Ok(text + "}")
}

/// Returns the schemas of `oneOf` as crdify compares them.
fn alternatives(list: &Value, bounds: &Bounds) -> Result<BTreeSet<String>, Exceeded> {
    let mut texts = BTreeSet::new();
    for schema in list.as_array().into_iter().flatten() {
        texts.insert(schema_text(schema, NOT_VALIDATING, bounds)?);
    }
    Ok(texts)
}

/// Returns true if two values of a keyword, with all that is in them, mean the same to Kubernetes.
fn is_same(
    keyword: &str,
    before: &Value,
    after: &Value,
    bounds: &Bounds,
) -> Result<bool, Exceeded> {
    if before == after {
        return Ok(true);
    }
    let olds = schemas(keyword, before);
    let news = schemas(keyword, after);
    if olds.is_empty() || olds.len() != news.len() {
        return Ok(false);
    }
    for ((path, old), (new_path, new)) in olds.iter().zip(&news) {
        if path != new_path {
            return Ok(false);
        }
        bounds.budget.charge(PROPERTY_STEPS)?;
        for keyword in keywords() {
            if !is_same(keyword, value(old, keyword), value(new, keyword), bounds)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Judges a change of a keyword by its rule; `None` if crdify has no rule for the keyword.
fn is_unsafe(
    keyword: &str,
    before: &Value,
    after: &Value,
    bounds: &Bounds,
) -> Result<Option<bool>, Exceeded> {
    let is_new = before.is_null() && !after.is_null();
    Ok(match keyword {
        // Schemas are compared each by its path.
        "description" | "items" | "properties" => Some(false),
        "default" | "nullable" | "pattern" | "type" => Some(before != after),
        "enum" => Some(is_new || !items(before).is_subset(&items(after))),
        "required" => Some(!items(after).is_subset(&items(before))),
        "maximum" | "maxItems" | "maxLength" | "maxProperties" => {
            Some(is_new || is_less(after, before))
        }
        "minimum" | "minItems" | "minLength" | "minProperties" => {
            Some(is_new || is_less(before, after))
        }
        "oneOf" => Some(alternatives(before, bounds)? != alternatives(after, bounds)?),
        _ => None,
    })
}

/// Returns the items of a list as JSON.
fn items(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    items.map(Value::to_string).collect()
}

fn is_less(one: &Value, other: &Value) -> bool {
    one.as_f64()
        .zip(other.as_f64())
        .is_some_and(|(one, other)| one < other)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => model::text::line(text, VALUE_CHARS),
        value => model::text::line(&value.to_string(), VALUE_CHARS),
    }
}

/// Change of a CustomResourceDefinition for which OLM v1 stops an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UnsafeChange {
    /// Name of the CustomResourceDefinition.
    pub crd: String,
    /// Version, or two served versions as `v1alpha1 -> v1`; empty for the whole definition.
    pub version: String,
    /// Path of the property as crdify writes it, such as `^.spec.size`; empty for the whole
    /// definition.
    pub property: String,
    /// Name of crdify's validation, such as `maximum`.
    pub rule: &'static str,
    /// Old and new value, shortened.
    pub change: String,
}

/// Unsafe changes of a CustomResourceDefinition that were found so far.
#[derive(Debug)]
pub(crate) struct SchemaComparison<'b> {
    /// Definition and versions of the changes to come.
    pub(crate) place: UnsafeChange,
    /// True if a property that the new schema lacks is compared with an empty one. False if its
    /// absence is a change by itself.
    pub(crate) ignores_removal: bool,
    pub(crate) changes: BTreeSet<UnsafeChange>,
    bounds: &'b Bounds,
}

impl<'b> SchemaComparison<'b> {
    pub(crate) fn new(name: &str, ignores_removal: bool, bounds: &'b Bounds) -> Self {
        Self {
            place: UnsafeChange {
                crd: name.to_owned(),
                ..UnsafeChange::default()
            },
            ignores_removal,
            changes: BTreeSet::new(),
            bounds,
        }
    }

    /// Adds the unsafe changes of a schema.
    pub(crate) fn compare_schemas(&mut self, old: &Value, new: &Value) -> Result<(), Exceeded> {
        let new = in_order_of(old, new, self.bounds)?;
        self.compare("^", old, &new)
    }

    /// Adds the unsafe changes of a property and of all properties in it.
    fn compare(&mut self, property: &str, old: &Value, new: &Value) -> Result<(), Exceeded> {
        self.bounds.budget.charge(PROPERTY_STEPS)?;
        // Most properties are the same in two versions.
        if old == new {
            return Ok(());
        }
        let mut unhandled = Vec::new();
        for keyword in keywords() {
            let before = value(old, keyword);
            let after = value(new, keyword);
            let judged = is_unsafe(keyword, before, after, self.bounds)?;
            let is_change = match judged {
                Some(is_unsafe) => is_unsafe,
                None => !is_same(keyword, before, after, self.bounds)?,
            };
            if !is_change {
                continue;
            }
            let change = format!("{keyword}: {} -> {}", shown(before), shown(after));
            if judged.is_some() {
                self.add(property, keyword, change)?;
            } else {
                unhandled.push(change);
            }
        }
        if !unhandled.is_empty() {
            self.add(property, "unhandled", unhandled.join("; "))?;
        }
        let others: BTreeMap<String, &Value> = children(new).collect();
        for (segment, child) in children(old) {
            let other = others.get(&segment).copied();
            if other == Some(child) {
                continue;
            }
            self.bounds
                .budget
                .charge_bytes(property.len() + segment.len())?;
            let property = format!("{property}{segment}");
            match other {
                None if !self.ignores_removal => {
                    let change = "the field and all in it are gone".to_owned();
                    self.add(&property, "existingFieldRemoval", change)?;
                }
                other => self.compare(&property, child, other.unwrap_or(&Value::Null))?,
            }
        }
        Ok(())
    }

    pub(crate) fn add(
        &mut self,
        property: &str,
        rule: &'static str,
        change: String,
    ) -> Result<(), Exceeded> {
        let found = UnsafeChange {
            property: property.to_owned(),
            rule,
            change,
            ..self.place.clone()
        };
        let texts = [&found.crd, &found.version, &found.property, &found.change];
        let bytes: usize = texts.into_iter().map(String::len).sum();
        self.bounds.answer(size_of::<UnsafeChange>() + bytes)?;
        self.changes.insert(found);
        Ok(())
    }
}
