//! Credentials go to their registry and its token service only. They are not in the output of a
//! poll at the highest log level, not in its errors, and not in the store.

use base64::{Engine, engine::general_purpose::STANDARD};
use testkit::{Fault, Kind, Registry, RegistryBuilder};

use crate::support::{binary::Ran, catalogs, work::Work};

const USER: &str = "robot-of-the-mirror";
const PASSWORD: &str = "hunter2-hunter2-hunter2";

type Protect = fn(RegistryBuilder, &str, &str) -> RegistryBuilder;

/// Returns the kinds of authentication: how the registry is protected, its entry in `auth.json`,
/// and the text that is sent to the registry or its token service, which could repeat it.
fn logins() -> [(&'static str, Protect, String, String); 3] {
    let entry = format!(r#"{{"auth": "{}"}}"#, basic());
    let identity = format!(r#"{{"auth": "PHRva2VuPjo=", "identitytoken": "{PASSWORD}"}}"#);
    [
        ("basic", RegistryBuilder::basic, entry.clone(), basic()),
        ("bearer", RegistryBuilder::bearer, entry, basic()),
        (
            "identity",
            RegistryBuilder::bearer,
            identity,
            PASSWORD.to_owned(),
        ),
    ]
}

fn basic() -> String {
    STANDARD.encode(format!("{USER}:{PASSWORD}"))
}

/// Returns all forms of the secret, and the tokens that were issued for it.
fn secrets() -> Vec<String> {
    let identity = STANDARD.encode(format!("<token>:{PASSWORD}"));
    let debug = format!("{:?}", PASSWORD.as_bytes());
    vec![
        PASSWORD.to_owned(),
        basic(),
        identity,
        debug,
        "Bearer token-".to_owned(),
        "token-1".to_owned(),
    ]
}

/// Polls once at the highest log level. Returns the exit code, and the output together with all
/// files of the store.
fn poll(registry: &Registry, auth: &str) -> (Option<i32>, String) {
    let work = Work::new();
    work.write("auth.json", auth);
    let source = registry.reference("ns/catalog", "latest");
    let line = format!(
        "poll -vv --log-format json --plain-http 127.0.0.1 --store store --auth-file auth.json --catalog site={source}"
    );
    let ran = Ran::of(work.command(&line).env("RUST_LOG", "trace"));
    assert!(work.exists("store/catalogs/site/status.json"));
    let files = catalogs::files(&work.path("store")).into_iter();
    let files = files.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned());
    let read = [ran.stdout, ran.stderr].into_iter().chain(files).collect();
    (ran.code, read)
}

/// Returns failures of the registry, most of them after it has received the secret.
fn failures(other: &str, secret: &str) -> Vec<(&'static str, Kind, Vec<Fault>)> {
    let after = |fault| vec![Fault::Pass, fault];
    let status = |code| Fault::Status(code, None);
    let body = |text: &str| vec![Fault::Body(text.to_owned())];
    let refused = format!("https://169.254.169.254/{PASSWORD}");
    let elsewhere = format!("http://{other}/v2/x/manifests/y");
    let echo = format!(r#"{{"errors": [{{"message": "{PASSWORD}"}}]}}"#);
    let digest = format!("sha256:{secret}");
    let unsendable = r#"{"token": "token-1\r\n"}"#;
    vec![
        ("nothing", Kind::Other, Vec::new()),
        ("403", Kind::Head, after(status(403))),
        ("404", Kind::Head, after(status(404))),
        ("418", Kind::Manifest, vec![status(418)]),
        ("401 again", Kind::Head, after(status(401))),
        (
            "an echo in a redirect",
            Kind::Head,
            after(Fault::Redirect(refused)),
        ),
        (
            "another host",
            Kind::Manifest,
            vec![Fault::Redirect(elsewhere)],
        ),
        ("an echo in a body", Kind::Manifest, body(&echo)),
        (
            "an echo in a digest",
            Kind::Head,
            after(Fault::Digest(digest)),
        ),
        ("a page", Kind::Token, body("<html>")),
        ("a token that cannot be sent", Kind::Token, body(unsendable)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn poll_leaves_no_secret_in_output_or_store() {
    for (login, protect, entry, sent) in logins() {
        let other = Registry::start().await;
        for (name, kind, faults) in failures(other.host(), &sent) {
            let registry = protect(Registry::builder(), USER, PASSWORD).start().await;
            registry.push(
                "ns/catalog",
                "latest",
                &catalogs::image(&[catalogs::package("a", 2)]),
            );
            let fails = !faults.is_empty();
            faults
                .into_iter()
                .for_each(|fault| registry.script(kind, fault));
            let auth = format!(r#"{{"auths": {{"{}": {entry}}}}}"#, registry.host());
            let (code, read) = poll(&registry, &auth);
            let skipped = kind == Kind::Token && login == "basic";
            assert_eq!(
                code == Some(1),
                fails && !skipped,
                "{login}, {name}: {read}"
            );
            assert!(fails || read.contains("DEBUG"), "everything was logged");
            for secret in secrets() {
                assert!(
                    !read.contains(&secret),
                    "{login}, {name}: {secret} is in {read}"
                );
            }
            // The test does not look for a text that cannot be there.
            let was_sent = registry.requests().iter().any(|request| {
                let as_basic = request.authorization == Some(format!("Basic {sent}"));
                as_basic || request.body.contains(&sent)
            });
            assert!(
                was_sent,
                "{login}, {name}: the registry never received the secret"
            );
        }
        for request in other.requests() {
            let text = format!("{request:?}");
            assert!(
                request.authorization.is_none() && !text.contains(PASSWORD),
                "{text}"
            );
        }
    }
}
