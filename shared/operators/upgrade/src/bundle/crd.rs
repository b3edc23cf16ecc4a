//! CustomResourceDefinitions and what is unsafe about a change of one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bundle::documents::DocumentField;
use crate::bundle::schema::{self, SchemaComparison};
use crate::bundle::{BundleError, UnsafeChange};
use crate::{Bounds, Exceeded};

/// A CustomResourceDefinition.
#[derive(Debug, PartialEq)]
pub(crate) struct Crd {
    spec: Value,
    /// Versions in which objects are stored: what the status says, and the one that is written.
    stored: BTreeSet<String>,
}

/// Place of a version such as `v2beta1` among others, and its name.
type VersionRank<'a> = (Option<[u64; 3]>, Reverse<&'a str>);

impl Crd {
    /// Reads and checks a definition.
    pub(crate) fn read(manifest: &DocumentField<'_>) -> Result<Self, BundleError> {
        let api = manifest.at("apiVersion")?;
        if api.text("")? != "apiextensions.k8s.io/v1" {
            return Err(api.error(
                "must be apiextensions.k8s.io/v1: clusters since Kubernetes 1.22 refuse others",
            ));
        }
        let stated = manifest.texts("status.storedVersions[]")?;
        let mut stored: BTreeSet<String> = stated.into_iter().map(str::to_owned).collect();
        for version in manifest.all("spec.versions[]")? {
            let name = version.text("name")?;
            let schema = version.at("schema.openAPIV3Schema")?;
            if let Some(path) = schema::reference("^", schema.value) {
                return Err(
                    schema.error(&format!("has a $ref at {path}, which Kubernetes forbids"))
                );
            }
            if version.value["storage"] == true {
                stored.insert(name.to_owned());
            }
        }
        let spec = manifest.value["spec"].clone();
        Ok(Self { spec, stored })
    }

    /// Returns the versions in the order in which Kubernetes prefers them, the best one last.
    fn versions(&self) -> BTreeMap<VersionRank<'_>, &Value> {
        let versions = self.spec["versions"].as_array().into_iter().flatten();
        versions
            .map(|version| (rank(version["name"].as_str().unwrap_or_default()), version))
            .collect()
    }

    /// Returns each version with its role.
    pub(crate) fn version_texts(&self) -> impl Iterator<Item = String> {
        let versions = self.versions().into_iter();
        versions.map(|((_, Reverse(name)), version)| {
            let role = match (version["served"] == true, version["storage"] == true) {
                (true, true) => "served, stored",
                (true, false) => "served",
                (false, true) => "stored",
                (false, false) => "not served",
            };
            format!("{name} ({role})")
        })
    }

    /// Returns all changes of the definition `name` for which OLM v1 stops the upgrade to `new`.
    pub(crate) fn unsafe_changes(
        &self,
        name: &str,
        new: &Self,
        bounds: &Bounds,
    ) -> Result<BTreeSet<UnsafeChange>, Exceeded> {
        let others = new.versions();
        let mut found = SchemaComparison::new(name, false, bounds);
        let old_scope = &self.spec["scope"];
        let new_scope = &new.spec["scope"];
        if old_scope != new_scope {
            found.add("", "scope", format!("{old_scope} -> {new_scope}"))?;
        }
        for version in &self.stored {
            if !others.contains_key(&rank(version)) {
                let change = format!("{version} is gone, and objects may be stored in it");
                found.add("", "storedVersionRemoval", change)?;
            }
        }
        for (rank, version) in self.versions() {
            if let Some(other) = others.get(&rank) {
                rank.1.0.clone_into(&mut found.place.version);
                found.compare_schemas(schema_of(version), schema_of(other))?;
            }
        }
        // A webhook converts whatever the schemas say.
        if new.spec["conversion"]["strategy"] != "Webhook" {
            let before = self.between_served(name, bounds)?;
            let after = new.between_served(name, bounds)?;
            found.changes.extend(&after - &before);
        }
        Ok(found.changes)
    }

    /// Returns the unsafe changes from each served version to each later one.
    fn between_served(
        &self,
        name: &str,
        bounds: &Bounds,
    ) -> Result<BTreeSet<UnsafeChange>, Exceeded> {
        let mut found = SchemaComparison::new(name, true, bounds);
        let served: Vec<_> = self
            .versions()
            .into_iter()
            .filter(|(_, version)| version["served"] == true)
            .collect();
        for (at, (from, old)) in served.iter().enumerate() {
            for (to, new) in &served[at + 1..] {
                found.place.version = format!("{} -> {}", from.1.0, to.1.0);
                found.compare_schemas(schema_of(old), schema_of(new))?;
            }
        }
        Ok(found.changes)
    }
}

fn schema_of(version: &Value) -> &Value {
    &version["schema"]["openAPIV3Schema"]
}

/// Returns the place of a version among others: alpha, beta or neither, then its numbers. Other
/// names come first.
fn rank(name: &str) -> VersionRank<'_> {
    (version_numbers(name), Reverse(name))
}

/// Returns the stage, the major and the minor number of a version such as `v2beta1`.
fn version_numbers(name: &str) -> Option<[u64; 3]> {
    let text = name.strip_prefix('v')?;
    if let Some((major, minor)) = text.split_once("alpha") {
        return Some([0, number(major)?, number(minor)?]);
    }
    if let Some((major, minor)) = text.split_once("beta") {
        return Some([1, number(major)?, number(minor)?]);
    }
    Some([2, number(text)?, 0])
}

fn number(text: &str) -> Option<u64> {
    // Rust reads a sign too.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::Index};
    use serde_json::{Value, json};

    use super::*;
    use crate::bundle::documents::BundleDocument;

    fn crd(spec: &Value) -> Crd {
        let document = BundleDocument {
            file: "crd.yaml".to_owned(),
            bytes: 0,
            value: json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}),
        };
        Crd::read(&document.root()).unwrap()
    }

    /// Returns a definition with one version of this schema.
    fn of_one(schema: &Value) -> Crd {
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        crd(&json!({"scope": "Namespaced", "versions": [version]}))
    }

    fn unsafe_between(old: &Value, new: &Value) -> Vec<String> {
        let found = of_one(old)
            .unsafe_changes("", &of_one(new), &Bounds::default())
            .unwrap();
        found
            .iter()
            .map(|change| format!("{} {}", change.property, change.rule))
            .collect()
    }

    /// Two schemas, and what is unsafe about the change from one to the other, where [`MUTATIONS`]
    /// do not say it. As in crdify, a change inside of `additionalProperties` is one of the schema
    /// around it too, and even a description counts there.
    const CHANGES: &str = r#"
{} -> {"properties": {"a": {"type": "string"}}} =>
{"properties": {"a": {"properties": {"b": {}}}}} -> {"properties": {}} => ^.a existingFieldRemoval
{"maximum": 1} -> {"maximum": 1.5} =>
{"maximum": 1} -> {"maximum": 1.0} =>
{"maximum": 1} -> {} =>
{} -> {"maximum": 1} => ^ maximum
{"minItems": 0} -> {"minItems": 1} => ^ minItems
{} -> {"minItems": 0} => ^ minItems
{"enum": ["a"]} -> {"enum": []} => ^ enum
{} -> {"enum": ["a"]} => ^ enum
{"default": null} -> {} =>
{"default": false} -> {} => ^ default
{"nullable": false} -> {} =>
{} -> {"nullable": true} => ^ nullable
{"pattern": "a"} -> {} => ^ pattern
{"format": "int32"} -> {"format": "int64", "title": "a"} => ^ unhandled
{"x-kubernetes-preserve-unknown-fields": false} -> {} => ^ unhandled
{"x-unknown": 1} -> {"x-unknown": 2} =>
{"additionalProperties": true} -> {"additionalProperties": {}} => ^ unhandled
{"additionalProperties": {"items": {"description": "a"}}} -> {"additionalProperties": {"items": {"description": "b"}}} => ^ unhandled
{"anyOf": [{"type": "string"}, {"minimum": 1}]} -> {"anyOf": [{"type": "string"}, {"minimum": 2}]} => ^ unhandled, ^.anyOf[1] minimum
{"anyOf": [{"type": "string"}, {"minimum": 1}]} -> {"anyOf": [{"minimum": 1}, {"type": "string"}]} =>
{"allOf": [{"required": ["a", "b"]}, {"minimum": 1}]} -> {"allOf": [{"minimum": 1}, {"required": ["b", "a"]}]} =>
{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]} -> {"oneOf": [{"required": ["b"]}, {"required": ["a"]}]} =>
{"additionalProperties": {"enum": ["a", "b"]}} -> {"additionalProperties": {"enum": ["b", "a"]}} =>
{"enum": ["a", "b"], "required": ["a", "b"]} -> {"enum": ["b", "a"], "required": ["b", "a"]} =>
{"items": {"oneOf": [{"anyOf": [{}, {"minimum": 1}]}, {}]}} -> {"items": {"oneOf": [{}, {"anyOf": [{"minimum": 1}, {}]}]}} =>
{} -> {"oneOf": [{}]} => ^ oneOf
{"oneOf": [{}]} -> {} => ^ oneOf, ^.oneOf[0] existingFieldRemoval
{"oneOf": [{"minimum": 1}]} -> {"oneOf": [{"minimum": 1}, {"maximum": 1}]} => ^ oneOf
{"oneOf": [{"minimum": 1}]} -> {"oneOf": [{"minimum": 1, "description": "a"}]} =>
{"oneOf": [{"not": {"minimum": 1}}]} -> {"oneOf": [{"not": {"minimum": 1, "description": "a"}}]} => ^ oneOf, ^.oneOf[0] unhandled
{"anyOf": [{"minimum": 1}]} -> {"anyOf": [{"minimum": 1, "description": "a"}]} => ^ unhandled
"#;

    #[test]
    fn schema_change_is_judged_by_rule_of_its_keyword() {
        for row in CHANGES.trim().lines() {
            let (schemas, expected) = row.split_once(" =>").unwrap();
            let (old, new) = schemas.split_once(" -> ").unwrap();
            let [old, new] = [old, new].map(|schema| serde_json::from_str(schema).unwrap());
            assert_eq!(
                unsafe_between(&old, &new).join(", "),
                expected.trim(),
                "{row}"
            );
        }
    }

    #[test]
    fn definition_change_is_judged_by_scope_and_versions() {
        let version = |name: &str, storage: bool, kind: &str| {
            let schema = json!({"openAPIV3Schema": {"properties": {"a": {"type": kind}}}});
            json!({"name": name, "served": true, "storage": storage, "schema": schema})
        };
        let with = |versions: &[Value], strategy: &str| {
            crd(
                &json!({"scope": "Cluster", "versions": versions, "conversion": {"strategy": strategy}}),
            )
        };
        let found = |old: &Crd, new: &Crd| {
            let found = old
                .unsafe_changes("", new, &Bounds::default())
                .unwrap()
                .into_iter();
            found
                .map(|change| format!("{} {} {}", change.version, change.property, change.rule))
                .collect::<Vec<_>>()
        };
        let alpha = with(&[version("v1alpha1", true, "string")], "None");
        let both = [
            version("v1", true, "integer"),
            version("v1alpha1", false, "string"),
        ];
        let (plain, converted) = (with(&both, "None"), with(&both, "Webhook"));
        assert_eq!(found(&alpha, &plain), ["v1alpha1 -> v1 ^.a type"]);
        assert_eq!(found(&alpha, &converted), [""; 0]);
        // The difference was there before.
        assert_eq!(found(&plain, &plain), [""; 0]);
        assert_eq!(found(&plain, &alpha), ["  storedVersionRemoval"]);
        let namespaced = crd(&json!({"scope": "Namespaced", "versions": both}));
        assert_eq!(found(&plain, &namespaced), ["  scope"]);
    }

    #[test]
    fn versions_are_ordered_by_stability_and_number() {
        let mut names =
            Vec::from_iter("v10 v2 v1beta2 v1beta10 v3alpha1 odd vx v1 v1beta v+1".split(' '));
        names.sort_by_key(|name| rank(name));
        assert_eq!(
            names.join(" "),
            "vx v1beta v+1 odd v3alpha1 v1beta2 v1beta10 v1 v2 v10"
        );
    }

    /// Each keyword with two values, the rule for the change from the first to the second and for
    /// the way back; empty for none.
    const MUTATIONS: &[[&str; 5]] = &[
        ["description", "\"a\"", "\"b\"", "", ""],
        ["type", "\"string\"", "\"integer\"", "type", "type"],
        ["pattern", "\"a\"", "\"b\"", "pattern", "pattern"],
        ["nullable", "false", "true", "nullable", "nullable"],
        ["default", "1", "{\"a\":1}", "default", "default"],
        ["enum", "[1]", "[1,2]", "", "enum"],
        ["required", "[\"a\"]", "[\"b\",\"a\"]", "required", ""],
        ["maximum", "1.5", "2", "", "maximum"],
        ["maxItems", "1", "2", "", "maxItems"],
        ["maxLength", "1", "2", "", "maxLength"],
        ["maxProperties", "1", "2", "", "maxProperties"],
        ["minimum", "1", "2", "minimum", ""],
        ["minItems", "1", "2", "minItems", ""],
        ["minLength", "1", "2", "minLength", ""],
        ["minProperties", "1", "2", "minProperties", ""],
        ["format", "\"a\"", "\"b\"", "unhandled", "unhandled"],
        ["uniqueItems", "false", "true", "unhandled", "unhandled"],
        ["multipleOf", "1", "2", "unhandled", "unhandled"],
        [
            "x-kubernetes-list-type",
            "\"set\"",
            "\"map\"",
            "unhandled",
            "unhandled",
        ],
        [
            "x-kubernetes-validations",
            "[]",
            "[{\"rule\":1}]",
            "unhandled",
            "unhandled",
        ],
    ];

    proptest! {
        #[test]
        fn mutation_at_any_place_is_judged_there(
            path in prop::collection::vec(prop_oneof![Just("items"), "[a-z]{1,3}".prop_map(|name| &*name.leak())], 0..6),
            one in any::<Index>(), back in any::<bool>(), mutations in prop::collection::vec(any::<Index>(), 0..4),
        ) {
            let build = |leaf: Value| path.iter().rev().fold(leaf, |schema, name| match *name {
                "items" => json!({"type": "array", "items": schema}),
                name => json!({"properties": {name: schema, "other": {"type": "string"}}}),
            });
            let [keyword, first, second, there, and_back] = *one.get(MUTATIONS);
            // Other keywords that stay as they are change nothing.
            let mut leaf = json!({});
            for other in &mutations {
                let [keyword, value, ..] = other.get(MUTATIONS);
                leaf[keyword] = serde_json::from_str(value).unwrap();
            }
            let leaf_with = |value: &str| {
                let mut leaf = leaf.clone();
                leaf[keyword] = serde_json::from_str(value).unwrap();
                build(leaf)
            };
            let one = leaf_with(first);
            let other = leaf_with(second);
            let (old, new) = if back { (&other, &one) } else { (&one, &other) };
            let rule = if back { and_back } else { there };
            let property: String = ["^"].into_iter().chain(path.iter().flat_map(|name| [".", name])).collect();
            let expected: Vec<String> = Some(rule).filter(|rule| !rule.is_empty()).map(|rule| format!("{property} {rule}")).into_iter().collect();
            prop_assert_eq!(unsafe_between(old, new), expected);
            prop_assert!(unsafe_between(old, old).is_empty());
        }
    }
}
