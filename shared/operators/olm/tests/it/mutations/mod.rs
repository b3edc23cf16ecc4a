//! Small catalogs that break one rule each, and valid ones that nearly do. `table.txt` describes
//! them.

use serde_json::{Value, json};

/// One line of the table.
pub(crate) struct Mutation {
    /// Code of the rule that the catalog breaks, or `valid`.
    pub(crate) rule: &'static str,
    /// Edits as the table writes them.
    pub(crate) edits: &'static str,
}

/// Returns the mutations of the table.
pub(crate) fn all() -> impl Iterator<Item = Mutation> {
    let lines = include_str!("table.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let (rule, edits) = line.split_once(' ').expect("a line has a rule and edits");
        Mutation { rule, edits }
    })
}

/// A package with one channel of three bundles, each of which replaces the one before.
#[derive(Clone)]
pub(crate) struct Catalog {
    /// The package, the channel, and the bundles from the oldest on; `Null` for one that was
    /// dropped.
    documents: [Value; 5],
    more: String,
}

impl Catalog {
    /// Returns a valid catalog.
    pub(crate) fn small() -> Self {
        let bundle = |version: &str| {
            json!({
                "schema": "olm.bundle", "package": "db", "name": format!("db.v{version}"),
                "image": format!("quay.io/db/bundle:v{version}"),
                "properties": [
                    {"type": "olm.package", "value": {"packageName": "db", "version": version}},
                    {"type": "olm.gvk", "value": {"group": "db.example", "kind": "Db", "version": "v1"}},
                    {"type": "olm.csv.metadata", "value": {
                        "annotations": {"capabilities": "Basic Install"}, "displayName": "Db",
                        "crdDescriptions": {"owned": [{"name": "dbs.db.example", "kind": "Db", "version": "v1"}]},
                        "installModes": [{"type": "AllNamespaces", "supported": true}],
                        "provider": {"name": "Example"},
                    }},
                ],
                "relatedImages": [{"name": "db", "image": format!("quay.io/db/db:v{version}")}],
            })
        };
        Self::linear(
            json!({"schema": "olm.package", "name": "db", "description": "A database."}),
            ["1.0.0", "1.1.0", "1.2.0"].map(bundle),
        )
    }

    /// Returns a catalog of the last three bundles in the lines of a Package.
    pub(crate) fn of_lines(lines: &str) -> Option<Self> {
        let documents = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).ok());
        let documents: Vec<Value> = documents.collect::<Option<_>>()?;
        let of = |schema: &'static str| {
            documents
                .iter()
                .filter(move |document| document["schema"] == schema)
        };
        let bundles: Vec<&Value> = of("olm.bundle").collect();
        let bundles = bundles.last_chunk::<3>()?;
        Some(Self::linear(
            of("olm.package").next()?.clone(),
            bundles.map(Value::clone),
        ))
    }

    fn linear(mut package: Value, bundles: [Value; 3]) -> Self {
        package["defaultChannel"] = json!("stable");
        let names = bundles.each_ref().map(|bundle| bundle["name"].clone());
        let channel = json!({
            "schema": "olm.channel", "package": package["name"], "name": "stable",
            "entries": [
                {"name": names[0]},
                {"name": names[1], "replaces": names[0]},
                {"name": names[2], "replaces": names[1]},
            ],
        });
        let [oldest, older, head] = bundles;
        Self {
            documents: [package, channel, oldest, older, head],
            more: String::new(),
        }
    }

    /// Returns the catalog after the edits of a mutation.
    pub(crate) fn mutated(&self, mutation: &Mutation) -> Self {
        let text = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        let [package, channel, oldest, older, head] = &self.documents;
        let mut edits = mutation.edits.to_owned();
        for (sign, document) in [
            ("$P", package),
            ("$C", channel),
            ("$O", oldest),
            ("$M", older),
            ("$H", head),
        ] {
            edits = edits.replace(sign, &text(document));
        }
        let mut mutated = self.clone();
        edits.split(" ;; ").for_each(|edit| mutated.edit(edit));
        mutated
    }

    fn edit(&mut self, edit: &str) {
        let (target, what) = edit.split_once(' ').expect("an edit has a target");
        let at = ["package", "channel", "oldest", "older", "head"];
        let Some(at) = at.iter().position(|name| *name == target) else {
            return self.more += &format!("{what}\n");
        };
        let document = &mut self.documents[at];
        match (what, what.split_once(" = ")) {
            ("twice", _) => self.more += &format!("{document}\n"),
            ("drop", _) => *document = Value::Null,
            (_, Some((path, value))) => set(
                document,
                path,
                serde_json::from_str(value).expect("a value is JSON"),
            ),
            _ => remove(
                document,
                what.strip_suffix(" remove").expect("an edit is known"),
            ),
        }
    }

    /// Returns the documents, one a line, with sorted keys.
    pub(crate) fn text(&self) -> String {
        let documents = self.documents.iter().filter(|document| !document.is_null());
        let lines: String = documents.map(|document| format!("{document}\n")).collect();
        lines + &self.more
    }

    /// Returns the name of the package.
    pub(crate) fn package(&self) -> &str {
        self.documents[0]["name"].as_str().unwrap_or_default()
    }
}

/// Returns the parent of the value at a path, and the last part of the path.
fn parent<'v, 'p>(document: &'v mut Value, path: &'p str) -> (&'v mut Value, &'p str) {
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let last = parts.pop().expect("a path has a part");
    let mut value = document;
    for part in parts {
        value = match index(value, part) {
            Some(at) => &mut value[at],
            None => &mut value[part],
        };
    }
    (value, last)
}

/// Returns the index that a part of a path means in a list.
fn index(value: &Value, part: &str) -> Option<usize> {
    let list = value.as_array()?;
    match part.strip_prefix('@') {
        Some(kind) => list.iter().position(|element| element["type"] == kind),
        None if part == "-" => Some(list.len()),
        None => part.parse().ok(),
    }
}

fn set(document: &mut Value, path: &str, new: Value) {
    let (value, last) = parent(document, path);
    match index(value, last) {
        Some(at) => {
            let list = value.as_array_mut().expect("an index is one of a list");
            if at == list.len() {
                list.push(new);
            } else {
                list[at] = new;
            }
        }
        None => value[last] = new,
    }
}

fn remove(document: &mut Value, path: &str) {
    let (value, last) = parent(document, path);
    match index(value, last) {
        Some(at) => drop(value.as_array_mut().map(|list| list.remove(at))),
        None => drop(value.as_object_mut().map(|object| object.remove(last))),
    }
}
