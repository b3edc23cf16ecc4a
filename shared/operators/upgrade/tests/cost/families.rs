//! Packages that cost most for their size.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use upgrade::plan::GraphFormat;

/// Packages of one kind, and what is asked about them.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Returns the lines of one of about a number of entries.
    pub(crate) lines: Lines,
    /// Returns those after the upgrade of the cluster, if they are others.
    pub(crate) then: Option<Lines>,
    pub(crate) questions: Vec<NamedQuestion>,
}

pub(crate) struct NamedQuestion {
    pub(crate) name: &'static str,
    /// Returns the question for a number of entries.
    pub(crate) question: Box<dyn Fn(usize) -> Question>,
}

type Lines = Box<dyn Fn(usize) -> String>;

pub(crate) enum Question {
    /// All ways from a version to the heads.
    Upgrade {
        from: &'static str,
    },
    Graph(GraphFormat),
    Plan {
        installed: String,
    },
    /// The bundles 1.0.0 and 2.0.0.
    Bundle,
}

pub(crate) fn families() -> Vec<Family> {
    vec![
        family("heads", |size| {
            with_bundles(size, channel("s", (0..size).map(|at| entry(at, &format!(r#""replaces":"gone{at}","skipRange":">=0.0.1 <1.{at}.0""#)))))
        })
        .upgrade()
        .text(),
        family("a chain", |size| with_bundles(size, chain("s", size)))
            .upgrade()
            .graph()
            .plan(one)
            .plan(all),
        family("one long range", |size| {
            let range: Vec<String> = (0..size).map(|at| format!("1.{at}.0")).collect();
            let entries = (0..size).map(|at| match at {
                0 => entry(0, ""),
                at if at == size - 1 => entry(at, &format!(r#""replaces":"p.v{}","skipRange":"{}""#, at - 1, range.join(" || "))),
                at => replacing(at),
            });
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .graph()
        .plan(one)
        .plan(all),
        family("a range of twenty alternatives each", |size| {
            let entries = (0..size).map(|at| {
                let range: Vec<String> = (0..20).map(|step| format!("1.{}.0-{step}", at * 7 % size)).collect();
                entry(at, &format!(r#""replaces":"p.v{}","skipRange":"{}""#, at.wrapping_sub(1), range.join(" || ")))
            });
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .graph()
        .plan(one)
        .plan(all),
        family("nested ranges", |size| {
            let entries = (0..size).map(|at| entry(at, &format!(r#""replaces":"p.v{}","skipRange":">=1.{}.0 <1.{at}.0""#, at.wrapping_sub(1), at / 2)));
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .text()
        .plan(one)
        .plan(all),
        family("one entry that skips all", |size| {
            let skips: Vec<String> = (0..size - 2).map(|at| format!(r#""p.v{at}""#)).collect();
            let entries = (0..size).map(|at| match at {
                0 => entry(0, ""),
                at if at == size - 1 => entry(at, &format!(r#""replaces":"p.v{}","skips":[{}]"#, at - 1, skips.join(","))),
                at => replacing(at),
            });
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .graph()
        .plan(one)
        .plan(all),
        family("forks", |size| {
            let entries = (0..size).map(|at| entry(at, &format!(r#""replaces":"p.v{}""#, at.wrapping_sub(1) / 2)));
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .graph(),
        family("a cycle", |size| {
            let entries = (0..size).map(|at| entry(at, &format!(r#""replaces":"p.v{}","skipRange":">=9.0.0""#, (at + 1) % size)));
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .graph(),
        family("entries that update each other", |size| {
            let entries = (0..size).map(|at| entry(at, &format!(r#""replaces":"p.v{}","skipRange":"1.{}.0""#, at.wrapping_sub(1), (at + 1) % size)));
            with_bundles(size, channel("s", entries))
        })
        .upgrade()
        .graph()
        .plan(one)
        .plan(all),
        family("channels", |size| {
            let channels: String = (0..size / 4).map(|at| chain(&format!("s{at}"), 4)).collect();
            with_bundles(4, channels)
        })
        .upgrade()
        .graph()
        .plan(one),
        // No version before leads to the head of one of the channels after the upgrade.
        family("a channel that is gone", |size| with_bundles(size, chain("s", size / 2)))
            .then(|size| {
                let channels: String = (0..size / 2).map(|at| channel(&format!("t{at}"), [format!(r#"{{"name":"q{at}","skipRange":">=1.{size}.0"}}"#)])).collect();
                with_bundles(0, channels)
            })
            .plan(one),
        family("rules", |size| rules(size, "get")).bundle(),
        family("patterns of URLs", |size| {
            let urls = (0..size).map(|at| json!(format!("/{}/{at}*", "a/".repeat(at % 20)))).collect();
            operators([urls, json!(["/a/*"])].map(|urls: Value| {
                json!([{"verbs": ["get"], "nonResourceURLs": urls}])
            }), |_| Vec::new())
        })
        .bundle(),
        family("roles", |size| {
            operators([json!([]), json!([])], |version| {
                let group = "rbac.authorization.k8s.io";
                let roles = (0..size / 2).map(|at| json!({
                    "apiVersion": group, "kind": "Role", "metadata": {"name": format!("r{at}")},
                    "rules": [{"verbs": [version], "apiGroups": [""], "resources": ["pods"]}],
                }));
                let bindings = (0..size / 2).map(|at| json!({
                    "apiVersion": group, "kind": "RoleBinding", "metadata": {"name": format!("b{at}")},
                    "roleRef": {"kind": "Role", "name": format!("r{at}")},
                    "subjects": [{"kind": "ServiceAccount", "name": "a"}],
                }));
                roles.chain(bindings).collect()
            })
        })
        .bundle(),
        family("properties", |size| {
            operators([json!([]), json!([])], |version| {
                let properties: serde_json::Map<String, Value> = (0..size)
                    .map(|at| (format!("p{at}"), json!({"type": "string", "maxLength": version.len() + at, "pattern": version})))
                    .collect();
                vec![definition([json!({"properties": properties})])]
            })
        })
        .bundle(),
    ]
}

fn family(name: &'static str, lines: impl Fn(usize) -> String + 'static) -> Family {
    Family {
        name,
        lines: Box::new(lines),
        then: None,
        questions: Vec::new(),
    }
}

impl Family {
    fn then(mut self, then: impl Fn(usize) -> String + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }

    fn ask(mut self, name: &'static str, question: impl Fn(usize) -> Question + 'static) -> Self {
        self.questions.push(NamedQuestion {
            name,
            question: Box::new(question),
        });
        self
    }

    fn upgrade(self) -> Self {
        self.ask("upgrade", |_| Question::Upgrade { from: "1.1.0" })
    }

    fn text(self) -> Self {
        self.ask("graph", |_| Question::Graph(GraphFormat::Text))
    }

    fn graph(self) -> Self {
        self.text()
            .ask("diagram", |_| Question::Graph(GraphFormat::Dot))
    }

    fn plan(self, installed: fn(usize) -> String) -> Self {
        self.ask("plan", move |size| Question::Plan {
            installed: installed(size),
        })
    }

    fn bundle(self) -> Self {
        self.ask("bundle", |_| Question::Bundle)
    }
}

/// Returns one operator.
fn one(_: usize) -> String {
    "p 1.1.0 s".to_owned()
}

/// Returns as many operators as there are entries, in all versions.
fn all(size: usize) -> String {
    (0..size).fold(String::new(), |mut list, at| {
        writeln!(list, "p 1.{at}.0 s").unwrap();
        list
    })
}

fn entry(at: usize, fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    format!(r#"{{"name":"p.v{at}"{comma}{fields}}}"#)
}

fn replacing(at: usize) -> String {
    entry(at, &format!(r#""replaces":"p.v{}""#, at - 1))
}

fn chain(name: &str, size: usize) -> String {
    channel(
        name,
        (0..size).map(|at| if at == 0 { entry(0, "") } else { replacing(at) }),
    )
}

/// Returns the line of a channel.
pub(crate) fn channel(name: &str, entries: impl IntoIterator<Item = String>) -> String {
    let entries: Vec<String> = entries.into_iter().collect();
    let entries = entries.join(",");
    format!(
        "{{\"entries\":[{entries}],\"name\":\"{name}\",\"package\":\"p\",\"schema\":\"olm.channel\"}}\n"
    )
}

/// Adds as many bundles to channels.
pub(crate) fn with_bundles(size: usize, channels: String) -> String {
    (0..size).fold(channels, |mut lines, at| {
        let package = format!(
            r#"{{"type":"olm.package","value":{{"packageName":"p","version":"1.{at}.0"}}}}"#
        );
        writeln!(
            lines,
            r#"{{"name":"p.v{at}","package":"p","properties":[{package}],"schema":"olm.bundle"}}"#
        )
        .unwrap();
        lines
    })
}

/// Returns two bundles with as many rules, each with a verb of its own.
fn rules(size: usize, verb: &str) -> String {
    let rules = ["old", "new"].map(|version| {
        (0..size)
            .map(|at| json!({"verbs": [verb, format!("{version}{at}")], "apiGroups": ["g"], "resources": [format!("r{at}")]}))
            .collect()
    });
    operators(rules, |_| Vec::new())
}

/// Returns two bundles by their rules and their other objects.
pub(crate) fn operators(rules: [Value; 2], objects: impl Fn(&str) -> Vec<Value>) -> String {
    let mut lines = String::new();
    for (version, rules) in ["1.0.0", "2.0.0"].into_iter().zip(rules) {
        let permissions = json!([{"serviceAccountName": "a", "rules": rules}]);
        let operator = json!({
            "kind": "ClusterServiceVersion", "metadata": {"name": "p"},
            "spec": {"version": version, "install": {"spec": {"clusterPermissions": permissions}}},
        });
        let properties = [operator]
            .into_iter()
            .chain(objects(version))
            .map(|object| {
                let data = STANDARD.encode(object.to_string());
                json!({"type": "olm.bundle.object", "value": {"data": data}})
            });
        let package =
            json!({"type": "olm.package", "value": {"packageName": "p", "version": version}});
        let properties: Vec<Value> = properties.chain([package]).collect();
        let line = json!({"name": format!("p.v{version}"), "properties": properties, "schema": "olm.bundle"});
        writeln!(lines, "{line}").unwrap();
    }
    lines
}

/// Returns a definition with these schemas, each of a version, of which the first is stored.
pub(crate) fn definition(schemas: impl IntoIterator<Item = Value>) -> Value {
    let versions: Vec<Value> = schemas
        .into_iter()
        .enumerate()
        .map(|(at, schema)| json!({"name": format!("v{}", at + 1), "served": true, "storage": at == 0, "schema": {"openAPIV3Schema": schema}}))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"scope": "Namespaced", "versions": versions},
    })
}
