//! Outputs of all commands: nothing that a stranger wrote changes a terminal, and no secret of a
//! command line or of the environment is printed. Commands, options and formats are those of the
//! help, so that a new one is not missed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, PipeWriter};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use model::Sha256;
use serde_json::{Value, json};
use testkit::Registry;
use tokio::task::block_in_place;

use crate::support::{binary::Ran, catalogs, http, work::Work};

/// Text that a terminal, a log or a shell would take for more than a text.
const EVIL: &str = "\u{1b}[2J\u{202e}\u{200f}\u{7}\u{9b}\u{7f}\u{2028}\r\nevil;touch evil";

/// A command line for each command and each kind of output. Words that begin with @ are names of
/// the catalog. What a line needs is there before the first one runs.
const LINES: &[&str] = &[
    "serve --store store --no-poll --listen 192.0.2.1:80",
    "poll --store polled --catalog c=dir:new",
    "poll --store polled --config catalogs.yaml",
    "render dir:new",
    "compose --store store compose.yaml",
    "compose --store store --explain compose.yaml",
    "compose --store store other.yaml",
    "ls --store store",
    "ls --store store c",
    "history --store store c",
    "carry out isc.yaml filled --skopeo ./skopeo --plain-http @host",
    "carry in disk @host/x --skopeo ./skopeo --plain-http @host --store carried",
    "carry across wrong-isc.yaml @host/x --skopeo ./skopeo",
    "carry across isc.yaml @host/x --skopeo ./skopeo --plain-http @host --store across",
    "carry push c @host/x --plain-http @host --store store --manifests pushed",
    "carry prune @host/x --plain-http @host --store store",
    "search --store store",
    "search --store store pkg",
    "validate --store store c",
    "validate dir:new",
    "verify --store damaged",
    "verify --store damaged --repair-from store",
    "gc --store store --dry-run",
    "promote c --store other --config catalogs.yaml",
    "rollback --store other c --previous",
    "rollback --store other c 0123",
    "release --store other c",
    "diff --store store c",
    "diff dir:old dir:new",
    "diff --held --store store c",
    "diff --held --store store c dir:new",
    "plan installed.json --store store --from c --to c",
    "upgrade --store store c @package @first",
    "upgrade --store store c @package @similar",
    "upgrade --store store c @similar 1.0.0",
    "graph --store store c @package",
    "graph --store store c @similar",
    "graph --store store c @package --channel @similar",
    "images --store store",
    "images --store store --package @package",
    "images --store store --channel @channel",
    "images --store store --package @similar",
    "bundle --store store show c/@first",
    "bundle --store store show c/@similar",
    "bundle --store store diff c @package @first @second",
    "bundle show dir:bundle",
    "manifests --store store --url https://m.example",
    "manifests --store store --images-at r.example/x",
    "rm --store removed c",
    "rm --store other @similar",
    "sync store synced",
    "export --store store --to a.tar",
    "export --store store --static tree",
    "import --store imported archive.tar",
    "receipt --store store",
    "keygen key",
    "demo --once --update-after 0s --listen 127.0.0.1:0",
    "completions bash",
];

/// Commands whose standard output is the lines of a catalog, byte for byte, or a script.
const EXACT: &[&str] = &[
    "render",
    "compose --store store compose.yaml",
    "completions",
];

/// Options after which a command does something else than it prints: other tests have them.
const APART: &[&str] = &[
    "--help",
    "--version",
    "--verbose",
    "--quiet",
    "--watch",
    "--log-format",
];

/// An option as the help of a command shows it.
struct HelpOption {
    name: String,
    has_value: bool,
    /// Values that are possible, if the help lists them.
    values: Vec<String>,
}

/// Help of a command.
struct Help {
    commands: Vec<String>,
    options: Vec<HelpOption>,
}

impl Help {
    fn of(work: &Work, command: &str) -> Self {
        let text = work.run(&format!("{command} -h")).exits(0).stdout;
        let commands = text.split("\nCommands:\n").nth(1).unwrap_or_default();
        let commands = commands.lines().take_while(|line| !line.is_empty());
        // Lines that go on are deeper.
        let commands = commands.filter(|line| !line.starts_with("   "));
        let commands = commands.filter_map(|line| line.split_whitespace().next());
        let mut options: Vec<String> = Vec::new();
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let line = line.trim();
            if indent <= 6 && line.starts_with('-') {
                options.push(line.to_owned());
            } else if indent > 6
                && let Some(option) = options.last_mut()
            {
                option.push(' ');
                option.push_str(line);
            }
        }
        Self {
            commands: commands.map(str::to_owned).collect(),
            options: options.iter().map(|text| HelpOption::new(text)).collect(),
        }
    }
}

impl HelpOption {
    fn new(text: &str) -> Self {
        let long = text.find("--").expect("each option has a long name");
        let rest = &text[long..];
        let end = rest[2..].find(|c: char| c != '-' && !c.is_ascii_alphanumeric());
        let (name, rest) = rest.split_at(end.map_or(rest.len(), |end| end + 2));
        let values = rest.split("[possible values: ").nth(1).unwrap_or_default();
        let values = values.split(']').next().unwrap_or_default();
        let values = values.split(", ").filter(|value| !value.is_empty());
        Self {
            name: name.to_owned(),
            has_value: rest.trim_start_matches([' ', '[', '=']).starts_with('<'),
            values: values.map(str::to_owned).collect(),
        }
    }
}

/// Returns the commands that do something, such as `ls` and `carry out`.
fn commands(work: &Work) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = Help::of(work, "").commands;
    while let Some(command) = open.pop() {
        if command.ends_with("help") {
            continue;
        }
        let inner = Help::of(work, &command).commands;
        if inner.is_empty() {
            found.push(command);
        } else {
            open.extend(inner.iter().map(|inner| format!("{command} {inner}")));
        }
    }
    found
}

/// Returns the line's command, such as `carry out`.
fn command_of<'a>(commands: &'a [String], line: &str) -> &'a str {
    let is_command = |command: &&String| format!("{line} ").starts_with(&format!("{command} "));
    let command = commands.iter().find(is_command);
    command.unwrap_or_else(|| panic!("{line} is of no command"))
}

fn is_terminal_control(c: char) -> bool {
    let is_mark = "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}"
        .contains(c);
    is_mark || (c.is_control() && c != '\n')
}

/// Returns the text without the sequences that colour it.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_code = |c: char| c.is_ascii_digit() || c == ';';
        match part.trim_start_matches(is_code).strip_prefix('m') {
            Some(rest) => shown.push_str(rest),
            None => shown.push_str(&format!("\u{1b}[{part}")),
        }
    }
    shown
}

/// Number of checks at a time. Some wait for seconds, because their registry has no address.
const CHECKS_AT_ONCE: usize = 8;

/// Runs checks of all items on some threads. Returns what each has found.
fn found_in_all<T: Sync>(items: &[T], check: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(check(item));
        }
        found
    };
    block_in_place(|| {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..CHECKS_AT_ONCE).map(|_| scope.spawn(work)).collect();
            let found = threads.into_iter().map(thread::ScopedJoinHandle::join);
            found
                .flat_map(|found| found.expect("the check ends"))
                .collect()
        })
    })
}

/// A folder with a catalog in which each text of a stranger ends with [`EVIL`].
struct EvilSite {
    work: Work,
    host: String,
    _registry: Registry,
}

fn evil(text: &str) -> String {
    format!("{text}{EVIL}")
}

/// Returns a document as YAML, which may hold such texts only in their escaped form.
fn yaml(document: &Value) -> String {
    let escaped = |c: char| {
        if c.is_ascii() && c != '\u{7f}' {
            c.to_string()
        } else {
            format!("\\u{:04x}", u32::from(c))
        }
    };
    document.to_string().chars().map(escaped).collect()
}

/// Returns the lines of a package with so many versions.
fn evil_package(versions: usize) -> String {
    let package = evil("pkg");
    let mut entries = Vec::new();
    for version in 1..=versions {
        let mut entry =
            json!({"name": evil(&format!("b.v{version}")), "skipRange": evil(">=0.0.1 <0.9.0")});
        if version > 1 {
            entry["replaces"] = json!(evil(&format!("b.v{}", version - 1)));
            entry["skips"] = json!([evil("b.v0")]);
        }
        entries.push(entry);
    }
    let mut metas = vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": evil("ch"),
            "description": evil("text"), "icon": {"base64data": "AA==", "mediatype": evil("image/png")}}),
        json!({"schema": "olm.channel", "package": package, "name": evil("ch"), "entries": entries}),
        json!({"schema": "olm.deprecations", "package": package, "entries": [
            {"reference": {"schema": "olm.package"}, "message": evil("old")},
            {"reference": {"schema": "olm.channel", "name": evil("ch")}, "message": evil("old")},
            {"reference": {"schema": "olm.bundle", "name": evil("b.v1")}, "message": evil("old")}]}),
        json!({"schema": evil("other"), "package": package, "name": evil("other")}),
    ];
    for version in 1..=versions {
        let csv = json!({"displayName": evil("name"), "description": evil("text"), "keywords": [evil("word")],
            "provider": {"name": evil("provider")},
            "annotations": {"categories": evil("Database"), "capabilities": evil("Deep Insights")}});
        metas.push(json!({"schema": "olm.bundle", "package": package, "name": evil(&format!("b.v{version}")),
            "image": evil(&format!("r.example/bundle:{version}")),
            "relatedImages": [{"name": evil("image"), "image": evil("r.example/related:1")},
                {"name": evil("sound"), "image": "r.example/sound:1"}],
            "properties": [
                {"type": "olm.package", "value": {"packageName": package, "version": format!("{version}.0.0")}},
                {"type": "olm.gvk", "value": {"group": evil("g"), "kind": evil("K"), "version": evil("v1")}},
                {"type": "olm.maxOpenShiftVersion", "value": evil("4.1")},
                {"type": "olm.csv.metadata", "value": csv},
                {"type": evil("own"), "value": evil("value")}]}));
    }
    let lines: String = metas.iter().map(|meta| format!("{meta}\n")).collect();
    lines
}

impl EvilSite {
    async fn start() -> Self {
        let work = Work::new();
        let registry = Registry::start().await;
        let host = registry.host().to_owned();
        work.write("old/catalog.json", evil_package(1));
        work.write("new/catalog.json", evil_package(2));
        for store in ["store", "other", "damaged"] {
            for folder in ["old", "new"] {
                work.run(&format!("poll --store {store} --catalog c=dir:{folder}"))
                    .exits(0);
            }
        }
        work.run("sync store removed").exits(0);
        work.run("export --store store --to archive.tar").exits(0);
        let shards = catalogs::files(&work.path("damaged/packages"));
        for (name, _) in shards {
            work.write(&format!("damaged/packages/{name}"), "x");
        }
        registry.push(
            "ns/index",
            "v1",
            &catalogs::image(&catalogs::files(&work.path("new"))),
        );
        let operators = json!([{"catalog": format!("{host}/ns/index:v1"), "full": true}]);
        let images = json!([{"name": evil("quay.io/a/b:v1")}]);
        let isc = json!({"apiVersion": "mirror.openshift.io/v2alpha1", "kind": "ImageSetConfiguration",
            "mirror": {"operators": operators, "additionalImages": images}});
        let mut wrong = isc.clone();
        wrong["mirror"][evil("unknown")] = json!(evil("value"));
        work.write("wrong-isc.yaml", yaml(&wrong));
        work.write("isc.yaml", yaml(&isc));
        work.write("compose.yaml", "inputs: [{catalog: c}]");
        let select = json!([{"name": evil("pkg").replace("evil", "evi1")}]);
        let other = json!({"inputs": [{"catalog": "c", "select": {"packages": select}}]});
        work.write("other.yaml", yaml(&other));
        let catalogs = json!({"catalogs": [{"name": "c", "source": evil("quay.io/a/b:v1")}, {"name": evil("c"),
            "source": "dir:new"}], evil("field"): evil("value")});
        work.write("catalogs.yaml", yaml(&catalogs));
        work.write("installed.json", installed().to_string());
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": evil("a.g")}, "spec": {"group": evil("g"), "names": {"kind": evil("K"), "plural": evil("ks")},
            "versions": [{"name": evil("v1"), "served": true, "storage": true}]}});
        let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": evil("b.v1")}, "spec": {"version": "1.0.0", "displayName": evil("name"),
            "relatedImages": [{"name": evil("i"), "image": evil("r.example/i:1")}],
            "install": {"strategy": "deployment", "spec": {"clusterPermissions": [{"serviceAccountName": evil("sa"),
                "rules": [{"apiGroups": [evil("g")], "resources": [evil("r")], "verbs": [evil("v")]}]}]}}}});
        work.write("bundle/manifests/crd.json", crd.to_string());
        work.write("bundle/manifests/csv.json", csv.to_string());
        let annotations = json!({"annotations": {"operators.operatorframework.io.bundle.package.v1": evil("pkg"),
            "operators.operatorframework.io.bundle.channels.v1": evil("ch")}});
        work.write("bundle/metadata/annotations.yaml", yaml(&annotations));
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && echo skopeo version 1.9.3 && exit\nprintf 'a\\nmsg=c{}' >&2\nexit 1\n",
            EVIL.replace(['\n', ';'], "")
        );
        work.write("skopeo", script);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(work.path("skopeo"), mode).expect("the file is there");
        let manifest = b"manifest";
        work.write("disk/images/r.example/i:1/manifest.json", manifest);
        let digest = format!("sha256:{}", Sha256::of(manifest));
        let carried = json!({"formatVersion": 1, "archive": "archive.tar",
            "images": [{"image": "r.example/i:1", "digest": digest}]});
        work.write("disk/carry.json", carried.to_string());
        fs::copy(work.path("archive.001.tar"), work.path("disk/archive.tar")).expect("it is there");
        Self {
            work,
            host,
            _registry: registry,
        }
    }

    /// Returns the command of a line, with names of the catalog in place of words with @.
    fn command(&self, line: &str) -> Command {
        let mut command = self.work.command("");
        for word in line.split(' ') {
            let word = word
                .replace("@package", &evil("pkg"))
                .replace("@channel", &evil("ch"))
                .replace("@first", &evil("b.v1"))
                .replace("@second", &evil("b.v2"))
                .replace("@similar", &evil("pkg").replace("evil", "evi1"))
                .replace("@host", &self.host);
            command.arg(word);
        }
        command
    }
}

/// Returns what is installed on a cluster: the package with its first version.
fn installed() -> Value {
    let item = |kind: &str, name: &str, spec: Value, status: Value| {
        json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind,
            "metadata": {"name": evil(name), "namespace": evil("n")}, "spec": spec, "status": status})
    };
    let subscription = json!({"name": evil("pkg"), "channel": evil("ch"), "source": evil("c"), "sourceNamespace": "o"});
    let items = [
        item(
            "Subscription",
            "pkg",
            subscription,
            json!({"installedCSV": evil("b.v1")}),
        ),
        item(
            "ClusterServiceVersion",
            "b.v1",
            json!({"version": "1.0.0"}),
            json!({}),
        ),
        item(
            "Subscription",
            "gone",
            json!({"name": evil("gone")}),
            json!({}),
        ),
    ];
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Returns the options and values that may change what a command prints.
fn variations(help: &Help) -> Vec<String> {
    // What a command prints without options is in the first.
    let mut variations = vec!["-vv".to_owned(), "-vv --log-format json".to_owned()];
    let options = help.options.iter();
    for option in options.filter(|option| !APART.contains(&option.name.as_str())) {
        let values = option.values.iter();
        variations.extend(values.map(|value| format!("{} {value}", option.name)));
        if !option.has_value {
            variations.push(option.name.clone());
        }
    }
    variations
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_prints_what_changes_a_terminal() {
    let site = EvilSite::start().await;
    let commands = commands(&site.work);
    let covered: BTreeSet<&str> = LINES
        .iter()
        .map(|line| command_of(&commands, line))
        .collect();
    let missing = commands
        .iter()
        .filter(|command| !covered.contains(command.as_str()));
    assert_eq!(
        missing.collect::<Vec<_>>(),
        [""; 0],
        "LINES has no line of these"
    );
    let wrong = found_in_all(LINES, |line| {
        let help = Help::of(&site.work, command_of(&commands, line));
        let runs = variations(&help).into_iter().flat_map(|variation| {
            let whole = format!("{line} {variation}");
            let mut command = site.command(whole.trim_end());
            command.env("CLICOLOR_FORCE", "1");
            let ran = Ran::within(Duration::from_secs(60), &command);
            let is_exact = EXACT.iter().any(|exact| line.starts_with(exact));
            let printed = if is_exact { "" } else { &ran.stdout };
            let is_wrong = [printed, &ran.stderr].iter().any(|text| {
                let text = without_colours(text);
                let is_forged = text.lines().any(|line| line.starts_with("evil"));
                is_forged || text.contains(is_terminal_control)
            });
            (is_wrong || ran.code == Some(124)).then(|| format!("{whole}: {ran:?}"))
        });
        runs.collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(!site.work.exists("evil"), "a name ran as a command");
    // What a server says about the catalog.
    let server = site.work.serve("");
    for path in ["/metrics", "/catalogs", "/catalogs/c/status.json"] {
        let text = http::get(&server.url(path), &[])
            .await
            .text()
            .await
            .unwrap();
        assert_eq!(
            text.chars().find(|c| is_terminal_control(*c)),
            None,
            "{path}: {text:?}"
        );
    }
    let refused = site.work.json("carried/catalogs/c/status.json");
    assert!(
        !refused.to_string().contains(is_terminal_control),
        "{refused}"
    );
}

/// `catalog-mirror search | head` is what people type, and `head` may have ended before anything is
/// printed. The log and the errors may go to a closed pipe too.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_complains_about_a_closed_pipe() {
    let site = EvilSite::start().await;
    let commands = commands(&site.work);
    let helps = commands.iter().map(|command| format!("{command} --help"));
    let others = [
        "--version",
        "--help",
        "--unknown",
        "export --store store --to -",
        "compose --store store --image oci:layout:v1 compose.yaml",
    ];
    let lines = LINES.iter().chain(&others).map(|line| (*line).to_owned());
    let lines: Vec<String> = lines.chain(helps).collect();
    let wrong = found_in_all(&lines, |line| {
        let mut found = Vec::new();
        for option in ["", " --json", " -vv"] {
            let whole = format!("{line}{option}");
            let output = site.command(&whole).stdout(closed_pipe()).output();
            let output = output.expect("the binary runs");
            let errors = String::from_utf8_lossy(&output.stderr);
            let is_quiet = !errors.contains("panicked") && !errors.contains("Broken pipe");
            if !is_quiet || !is_code(output.status.code()) {
                found.push(format!("{whole}: {output:?}"));
            }
            let mut silent = site.command(&whole);
            let status = silent.stdout(closed_pipe()).stderr(closed_pipe()).status();
            let code = status.expect("the binary runs").code();
            if !is_code(code) {
                found.push(format!("{whole}, without standard error: {code:?}"));
            }
        }
        found
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns true for the exit codes of the help. A panic gives 101, and a signal none.
fn is_code(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 1 | 2 | 10))
}

/// Returns the end of a pipe that takes nothing, because the other end is closed.
fn closed_pipe() -> PipeWriter {
    let (_, writer) = io::pipe().expect("there is room for a pipe");
    writer
}

/// Secret of the command lines and of the environment.
const SECRET: &str = "hunter2-hunter2";

#[test]
fn no_command_prints_the_password_of_a_url() {
    let work = Work::published();
    work.write("old/catalog.json", &catalogs::package("pkg", 1).1);
    work.write("new/catalog.json", &catalogs::package("pkg", 2).1);
    work.write("compose.yaml", "inputs: [{catalog: demo}]");
    work.write("installed.json", "pkg 1.0.0\n");
    work.run("export --store store --to archive.tar").exits(0);
    let commands = commands(&work);
    let url = format!("https://robot:{SECRET}@127.0.0.1:9/x.tar?token={SECRET}");
    let values = [
        url.clone(),
        format!("c={url}"),
        format!("s3://robot:{SECRET}@bucket/x"),
    ];
    // Without a scheme only what names a registry or a mirror can be told from a path.
    let login = format!("robot:{SECRET}@127.0.0.1:9/x:v1");
    let run = format!(
        "render {login}; bundle show {login}; compose --image {login} compose.yaml; \
        poll --store store --catalog c={login}; validate {login}; plan installed.json --from {login} --to demo; \
        images --store store --plain-http {login}; images --store store --internal-host {login}; \
        manifests --store store --url {login}; manifests --store store --images-at {login}; \
        sync {login} copy; verify --store store --repair-from {login}; carry in disk {login}; ls {login}"
    );
    for line in run.split("; ") {
        let ran = work.run(line);
        assert!(
            ran.code != Some(0) && !format!("{ran:?}").contains(SECRET),
            "{line}: {ran:?}"
        );
    }
    let wrong = found_in_all(&commands, |command| {
        let line = LINES
            .iter()
            .find(|line| command_of(&commands, line) == command);
        let line = line.expect("each command has a line");
        let words = line.split(' ').map(|word| match word {
            "c" => "demo",
            word => word.trim_start_matches('@'),
        });
        let words: Vec<&str> = words.collect();
        let begin = command.split(' ').count();
        let mut runs: Vec<Vec<String>> = Vec::new();
        for value in &values {
            // In place of each word, and as the value of each option.
            for at in begin..words.len() {
                let mut words: Vec<String> = words.iter().copied().map(str::to_owned).collect();
                if !words[at].starts_with('-') {
                    words[at].clone_from(value);
                    runs.push(words);
                }
            }
            for option in Help::of(&work, command).options {
                let with_value = [option.name, value.clone()];
                let words = words.iter().copied().map(str::to_owned);
                // Any text is printed as the namespace of the manifests.
                if option.has_value && with_value[0] != "--namespace" {
                    runs.push(words.chain(with_value).collect());
                }
            }
        }
        runs.push(vec![command.clone(), "--help".to_owned()]);
        let mut wrong = Vec::new();
        for words in runs {
            let mut run = work.command("-vv");
            run.args(words.iter().flat_map(|word| word.split(' ')));
            let variables = "CATALOG_MIRROR_LOG_FORMAT CATALOG_MIRROR_LISTEN CATALOG_MIRROR_GRPC";
            if words.last().is_some_and(|word| word == "--help") {
                for name in variables.split(' ') {
                    run.env(name, &url);
                }
                run.env("CATALOG_MIRROR_CONFIG", &url);
            }
            run.env("CATALOG_MIRROR_STORE", &url);
            run.env("AWS_SECRET_ACCESS_KEY", SECRET);
            run.env("AWS_ACCESS_KEY_ID", "robot");
            run.env("AWS_EC2_METADATA_DISABLED", "true");
            run.env("ALL_PROXY", format!("http://robot:{SECRET}@127.0.0.1:9"));
            let ran = Ran::within(Duration::from_secs(20), &run);
            if format!("{ran:?}").contains(SECRET) {
                wrong.push(format!("{words:?}: {ran:?}"));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
