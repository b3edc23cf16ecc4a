//! The command blocks of the pages run in order, each page in a folder of its own. Only names,
//! paths and ports are replaced.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use testkit::Registry;

use crate::pages::{Block, Page, pages};
use crate::support::binary::{self, Ran, Server};
use crate::support::work::Work;
use crate::support::{bundles, cargo, catalogs};

/// Parts of blocks that need what a test does not have, and the place where the same commands run.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cargo ", "developers, .ci/run"),
    ("scripts/bench", "scripts/long-checks"),
    ("s3://my-bucket/tree", "tests of static_tree"),
    ("s3://my-bucket", "scripts/checks/s3.sh"),
    ("scripts/deploy", "scripts/checks/template.sh"),
    ("scripts/invoke", "scripts/checks/template.sh"),
    ("cloudfront.net", "scripts/checks/template.sh"),
    ("wrangler ", "scripts/checks/edge.sh, without Cloudflare"),
    ("r2.cloudflarestorage.com", "scripts/checks/s3.sh"),
    ("put-bucket-cors", "scripts/checks/static.sh"),
    (
        "systemctl",
        "scripts/checks/server.sh, which checks the units",
    ),
    ("scripts/image", "scripts/checks/image.sh"),
    ("podman ", "scripts/checks/image.sh, with runc"),
    ("/releases/download/", "scripts/checks/packages.sh"),
    ("sha256sum --check", "scripts/checks/packages.sh"),
    ("cosign ", "scripts/checks/packages.sh"),
    ("gh attestation", "users of GitHub, who keeps attestations"),
    ("kubectl create", "scripts/checks/kubernetes.sh"),
    ("kubectl apply -k", "scripts/checks/kubernetes.sh"),
    ("kubectl apply -f manifests/", "tests of carry"),
    ("kubectl apply -l", "scripts/checks/cluster_manifests.sh"),
    ("kubectl delete", "scripts/checks/cluster_manifests.sh"),
    ("kubectl rollout", "scripts/checks/cluster_manifests.sh"),
    ("kubectl exec", "scripts/checks/kubernetes.sh"),
    ("helm ", "scripts/checks/cluster_manifests.sh"),
    (
        "catalog-mirror-controller",
        "scripts/checks/cluster_sources.sh",
    ),
    ("catalog-mirror carry", "tests of carry"),
];

/// Pages that begin without a store, because their first commands make one.
const FIRST_STEPS: [&str; 3] = ["README.md", "infra/disconnected/imageset.md", SIGNING];

/// Page whose mirror signs from its first publication on.
const SIGNING: &str = "shared/core/trust/SIGNATURES.md";

/// Programs of others, which need servers or a cluster. They read what they are given.
const STAND_INS: &[(&str, &str)] = &[
    (
        "kubectl",
        "case $1 in get) echo 'demo-cache 1.0.0 stable' ;; *) grep -q '^kind: ' ;; esac",
    ),
    ("skopeo", "true"),
    (
        "htpasswd",
        "echo 'alice:$2y$05$abcdefghijklmnopqrstuuLcCEAYVMJmN4oMSt6pTqZRWLGHQQJ.W'",
    ),
];

/// `serve` runs until a signal, so it gets one: in the foreground, because `timeout` would send a
/// second one, which ends it at once. Options of `PLAIN` reach the registry and the mirror, which
/// have no TLS here. Exit code 10 is an answer of `diff`.
const PROGRAM: &str = r#"
case " $* " in *" serve "* | *" --watch "*) run="timeout --foreground --preserve-status --signal=INT 2" ;; esac
case $1 in serve | poll | compose | render | validate | diff | images | upgrade | graph | plan | bundle) set -- "$@" $PLAIN ;; esac
$run "$BINARY" "$@" || { code=$?; ((code == 10)) || exit "$code"; }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_pages_run_in_order() {
    let mut count = 0;
    for page in pages() {
        let mut blocks = page.blocks("sh");
        blocks.retain(|block| block.info != "sh test" && !block.runs_elsewhere());
        if blocks.is_empty() {
            continue;
        }
        let site = PageSite::start(&page).await;
        for block in &blocks {
            site.run(&page, block.info == "sh high", &block.text);
            site.publish_update();
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} blocks were found");
}

impl Block {
    fn runs_elsewhere(&self) -> bool {
        ELSEWHERE.iter().any(|(part, _)| self.text.contains(part))
    }
}

impl Page {
    /// Returns the path from the root of the tree.
    fn name(&self) -> String {
        let path = self
            .path
            .strip_prefix(cargo::root())
            .expect("pages lie in the tree");
        path.display().to_string()
    }
}

/// The folder of a page, the registry that it names, and the mirror `https://mirror.example`, whose
/// store is the default one.
struct PageSite {
    work: Work,
    registry: Registry,
    mirror: Server,
}

impl PageSite {
    async fn start(page: &Page) -> Self {
        let (work, registry) = (Work::new(), Registry::start().await);
        let host = registry.host();
        work.write(
            "catalogs.yaml",
            format!(
                "registries: {{plainHttp: ['{host}']}}\n\
                 catalogs:\n\
                 - {{name: operatorhubio, source: '{host}/operatorhubio/catalog:latest'}}\n\
                 - {{name: community, source: '{host}/operatorhubio/catalog:latest'}}\n\
                 - {{name: redhat, source: '{host}/redhat/redhat-operator-index:v4.20'}}\n\
                 - compose: {{imageSet: {}}}\n",
                work.path("imageset.yaml").display()
            ),
        );
        work.write(
            "imageset.yaml",
            format!(
                "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n\
                 mirror: {{operators: [{{catalog: '{host}/redhat/redhat-operator-index:v4.20', packages: [{{name: demo-queue}}]}}]}}\n"
            ),
        );
        work.write("authorization", "Authorization: Bearer token\n");
        work.write_all("configs", &catalogs::example("v1"));
        for folder in ["backup", "etc/bash_completion.d", "store"] {
            fs::create_dir_all(work.path(folder)).unwrap();
        }
        for (name, script) in STAND_INS.iter().chain(&[("catalog-mirror", PROGRAM)]) {
            let path = format!("bin/{name}");
            work.write(&path, format!("#!/usr/bin/env bash\n{script}\n"));
            fs::set_permissions(work.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let certificate = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout tls.key -out tls.crt";
        let mut openssl = Command::new("openssl");
        Ran::of(
            openssl
                .args(certificate.split(' '))
                .current_dir(work.root()),
        )
        .exits(0);
        let mirror = Server::of(work.command("serve --no-poll"));
        let site = Self {
            work,
            registry,
            mirror,
        };
        site.push("v1");
        for version in ["1", "2"] {
            let tag = format!("v{version}");
            let bundle = bundles::image(version);
            site.registry
                .push("operatorhubio/etcd-bundle", &tag, &bundle);
        }
        let is_first = FIRST_STEPS.contains(&page.name().as_str());
        if page.name() != SIGNING {
            site.work.run("poll --config catalogs.yaml").exits(0);
        }
        if !is_first {
            site.work
                .run("poll --config catalogs.yaml --store var")
                .exits(0);
            site.publish_update();
        }
        site
    }

    fn push(&self, version: &str) {
        let image = catalogs::image(&catalogs::example(version));
        self.registry
            .push("operatorhubio/catalog", "latest", &image);
        self.registry
            .push("redhat/redhat-operator-index", "v4.20", &image);
    }

    /// Lets the catalogs and the mirror change after the first block of a page.
    fn publish_update(&self) {
        self.push("v2");
        self.work.run("poll --config catalogs.yaml");
    }

    fn run(&self, page: &Page, is_high: bool, block: &str) {
        let (host, url) = (self.registry.host(), self.mirror.url.as_str());
        let mirror = url.trim_start_matches("http://");
        let root = self.work.root().display().to_string();
        let store = format!("{root}/{}", if is_high { "high" } else { "var" });
        let mut script = block.to_owned();
        for (name, replaced) in [
            ("/var/lib/catalog-mirror", store.as_str()),
            ("/srv/www/", &format!("{root}/srv/www/")),
            ("/backup/", &format!("{root}/backup/")),
            ("/etc/", &format!("{root}/etc/")),
            ("quay.io/", &format!("{host}/")),
            ("registry.example/", &format!("{host}/")),
            ("https://mirror.example:8443", url),
            ("https://mirror.example", url),
            ("mirror.example", mirror),
            ("now: [etcd]", "now: [demo-cache]"),
            ("--package etcd", "--package demo-queue"),
            ("operatorhubio etcd 0.9.0", "operatorhubio demo-cache 1.0.0"),
            ("operatorhubio etcd", "operatorhubio demo-cache"),
        ] {
            script = script.replace(name, replaced);
        }
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(&root);
        let path = format!("{root}/bin:{}", std::env::var("PATH").unwrap_or_default());
        let plain = format!("--plain-http {host} --plain-http {mirror}");
        for (name, value) in [
            ("PATH", path.as_str()),
            ("BINARY", &binary::path().display().to_string()),
            ("PLAIN", &plain),
            ("CATALOG_MIRROR_LISTEN", "127.0.0.1:0"),
            ("password", "word"),
            ("token", "token"),
        ] {
            command.env(name, value);
        }
        let ran = Ran::of(&mut command);
        assert_eq!(
            ran.code,
            Some(0),
            "{}: {script}\n{ran:#?}",
            page.path.display()
        );
    }
}
