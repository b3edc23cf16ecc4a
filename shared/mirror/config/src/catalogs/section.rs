//! Reading one mapping of `catalogs.yaml`, field by field, so that all of its problems are found at
//! once.

use std::fmt;

use model::{text::did_you_mean, yaml::plain_error};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::problems::Problems;

/// A mapping of which fields are taken one by one. Fields that are left over are unknown.
pub(crate) struct Section {
    /// Place of the mapping, for problems.
    pub(crate) place: String,
    pub(crate) problems: Problems,
    fields: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Section {
    /// Starts with a value that must be a mapping. `place` names it in problems.
    pub(crate) fn new(value: Value, place: String, problems: &Problems) -> Option<Self> {
        let Value::Object(fields) = value else {
            problems.add(
                place,
                format!("{value} is not a mapping of fields: write NAME: VALUE"),
            );
            return None;
        };
        Some(Self {
            place,
            problems: problems.clone(),
            fields,
            known: Vec::new(),
        })
    }

    /// Returns the place of one of its fields, for problems.
    pub(crate) fn place_of(&self, name: &str) -> String {
        format!("{}, {name}", self.place)
    }

    /// Adds a problem of the whole section.
    pub(crate) fn problem(&self, problem: impl fmt::Display) {
        self.problems.add(&self.place, problem);
    }

    /// Takes a field as it is. A field without a value, or with an empty text, is a problem: an
    /// empty variable in a template must not turn off verification or authentication.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let value = self.fields.remove(name)?;
        if value.is_null() || value.as_str() == Some("") {
            let problem = "has no value: give it one or remove the field";
            self.problems.add(self.place_of(name), problem);
            return None;
        }
        Some(value)
    }

    /// Returns true if a field is there and was not taken.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Adds a problem if a field is not there.
    pub(crate) fn require(&mut self, name: &str) -> &mut Self {
        if !self.fields.contains_key(name) {
            self.problem(format!("the field {name} is missing"));
        }
        self
    }

    /// Takes a field of some type.
    pub(crate) fn field<T: DeserializeOwned>(&mut self, name: &'static str) -> Option<T> {
        let value = self.value(name)?;
        deserialize(value, &self.place_of(name), &self.problems)
    }

    /// Takes a field by the parser of the flag of the same meaning.
    pub(crate) fn parsed<T, E: fmt::Display>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let value = self.value(name)?;
        self.problems.ok(self.place_of(name), parse(&text(&value)))
    }

    /// Takes a field that is a list of texts, each by a parser.
    pub(crate) fn parsed_list<T, E: fmt::Display>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let texts: Vec<String> = self.field(name).unwrap_or_default();
        let place = self.place_of(name);
        texts
            .iter()
            .filter_map(|text| self.problems.ok(&place, parse(text)))
            .collect()
    }

    /// Takes a field that is a mapping itself.
    pub(crate) fn section(&mut self, name: &'static str) -> Option<Self> {
        let value = self.value(name)?;
        Self::new(value, self.place_of(name), &self.problems)
    }

    /// Takes a field that is a mapping itself, and reads it to its end if it is there.
    pub(crate) fn with<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let mut section = self.section(name)?;
        let value = read(&mut section);
        section.finish();
        Some(value)
    }

    /// Takes a field that is a list of mappings. Each is named in problems by `kind` and its
    /// `name`, or its number.
    pub(crate) fn sections(&mut self, name: &'static str, kind: &str) -> Vec<Self> {
        let values: Vec<Value> = self.field(name).unwrap_or_default();
        let mut sections = Vec::new();
        for (value, number) in values.into_iter().zip(1..) {
            let place = match value.get("name").and_then(Value::as_str) {
                Some(name) => format!("{}, {kind} {name}", self.place),
                None => format!("{}, {kind} number {number}", self.place),
            };
            sections.extend(Self::new(value, place, &self.problems));
        }
        sections
    }

    /// Takes fields about which there is a problem already.
    pub(crate) fn drop_fields(&mut self, names: &[&str]) {
        for name in names {
            self.fields.remove(*name);
        }
    }

    /// Takes all fields that are left, for a section whose names are looked up elsewhere.
    pub(crate) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.fields)
    }

    /// Ends the section: fields that were not taken are unknown. They are never ignored, since most
    /// are misspelt.
    pub(crate) fn finish(self) {
        let known = self.known.join(", ");
        for name in self.fields.keys() {
            let similar = did_you_mean(name, self.known.iter().copied());
            self.problem(format!("unknown field {name}{similar}; known are {known}"));
        }
    }
}

/// Reads a value as some type. A problem names the path of the field inside of the value.
pub(crate) fn deserialize<T: DeserializeOwned>(
    value: Value,
    place: &str,
    problems: &Problems,
) -> Option<T> {
    match serde_path_to_error::deserialize(value) {
        Ok(read) => Some(read),
        Err(error) => {
            let place = match error.path().to_string().as_str() {
                // The path of the value itself.
                "." => place.to_owned(),
                path => format!("{place}, {path}"),
            };
            problems.add(place, plain_error(&error.into_inner().to_string()));
            None
        }
    }
}

/// Returns a scalar as it is written, so that `10` and `"10"` are the same value.
pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}
