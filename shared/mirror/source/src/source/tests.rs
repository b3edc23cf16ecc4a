use model::text::is_unprintable;

use super::*;

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const COMMIT: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

#[test]
fn display_of_source_is_its_text() {
    for text in [
        "quay.io/operatorhubio/catalog:latest",
        "localhost:5000/cat:v4.20",
        "quay.io/ns/cat@sha256:HEX",
        "quay.io/ns/cat:v1@sha256:HEX",
        "git:5000/cat:v1",
        "ssh:5000/cat:v1",
        "docker://dir:5000/cat:v1",
        "docker://oci:5000/cat:v1",
        "oci:some/dir",
        "oci:/some/dir:v1",
        "oci:a:b/dir",
        "oci:dir:with-colon:",
        "oci:dir::",
        "dir:/configs",
        "https://example.com/catalog.tar.gz",
        "https://example.com:8443/a/b/catalog.TGZ",
        "http://mirror:8080/catalog.tar",
        "https://example.com/catalog.tar.zst#configs/a b",
        "https://example.com/catalog.tar.gz#.",
        "https://a.io/c.tar#a#b",
        "git:https://a.io/repo",
        "git:https://a.io:8443/group/sub/repo.git",
        "git:http://localhost:8080/repo#main",
        "git:https://a.io/repo#refs/heads/main",
        "git:https://a.io/repo#feature/a-b_c.d:configs/a b",
        "git:https://a.io/repo#:configs",
        "git:https://a.io/repo#COMMIT:a",
        "git:https://a.io/repo#v1:a:b#c",
    ] {
        let text = text.replace("HEX", HEX).replace("COMMIT", COMMIT);
        assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
    }
}

#[test]
fn display_of_url_is_cleaned() {
    for (text, clean) in [
        (
            "https://a.io/x/../c.tar#/a//./b/../c/",
            "https://a.io/c.tar#a/c",
        ),
        ("https://a.io/c.tar#", "https://a.io/c.tar#."),
        ("HTTPS://A.io:443/c.tar", "https://a.io/c.tar"),
        ("git:https://a.io/repo/", "git:https://a.io/repo"),
        ("git:https://a.io/x/../repo#", "git:https://a.io/repo"),
        ("git:https://a.io/repo#:", "git:https://a.io/repo"),
        ("git:https://a.io/repo#main:", "git:https://a.io/repo#main"),
        (
            "git:https://a.io/repo#m:/a//./b/../c/",
            "git:https://a.io/repo#m:a/c",
        ),
    ] {
        assert_eq!(text.parse::<Source>().unwrap().to_string(), clean);
    }
}

#[test]
fn digest_and_commit_are_pinned_but_not_tag_and_branch() {
    let source = |text: &str| text.replace("COMMIT", COMMIT).parse::<Source>().unwrap();
    let pinned = |text: &str| source(text).pinned().map(|digest| digest.hex().to_owned());
    let image = format!("docker://quay.io/cat:v1@sha256:{HEX}");
    assert_eq!(pinned(&image).as_deref(), Some(HEX));
    let whole = pinned("git:https://a.io/repo#COMMIT");
    let upper = format!("git:https://a.io/repo#{}", COMMIT.to_uppercase());
    assert!(whole.is_some() && pinned(&upper) == whole);
    assert_eq!(source(&upper), source("git:https://a.io/repo#COMMIT"));
    assert_ne!(pinned("git:https://a.io/repo#COMMIT:a"), whole);
    let short = format!("git:https://a.io/repo#{}", &COMMIT[1..]);
    for text in ["quay.io/cat:v1", "git:https://a.io/repo#main", &short] {
        assert_eq!(pinned(text), None, "{text}");
    }
}

#[test]
fn parse_error_says_what_to_write() {
    const GIT: &str = "git:https://HOST/PATH#REF:PATH";
    const SECRET: &str = "a user, a password or a query";
    const NO_REF: &str = "no name of a branch";
    for (text, hint) in [
        ("", "registry/repo:tag"),
        ("catalog:latest", "quay.io/catalog:latest"),
        ("./configs", "dir:./configs"),
        ("/layout:v1", "oci:/layout:v1"),
        ("ns/catalog:latest", "docker.io/ns/catalog:latest"),
        ("quay.io/ns/catalog", "quay.io/ns/catalog:latest"),
        ("dir:", "dir:PATH"),
        ("oci::tag", "oci:DIR"),
        ("ftp://quay.io/ns/cat:v1", "docker://"),
        ("https://quay.io/ns/cat:v1", "docker://"),
        ("mirror:https://a.io/catalogs/demo", "docker://"),
        ("quay.io/NS/cat:v1", "not an image reference"),
        ("quay.io/ns/cat@sha256:1234", "malformed digest"),
        (
            "quay.io/ns/cat:v1@md5:d41d8cd98f00b204e9800998",
            "malformed digest",
        ),
        ("https://", "not a URL"),
        ("https://:1/c.tar", "not a URL"),
        ("https://user@a.io/c.tar", SECRET),
        ("https://a.io/c.zip", "does not end"),
        ("https://a.io/c.tar#../b", "leads out"),
        ("https://a.io/c.tar#a/../../b", "leads out"),
        ("https://a.io/c.tar#a\u{1b}[31m", "control characters"),
        ("git:", GIT),
        ("git:a.io/repo", GIT),
        ("git:file:///repo", GIT),
        ("git:ssh://a.io/repo#main:configs", GIT),
        ("git+https://a.io/repo", GIT),
        ("git+ssh://a.io/repo", GIT),
        ("git://a.io/repo", GIT),
        ("ssh://git@a.io/repo", GIT),
        ("git@a.io:owner/repo", GIT),
        ("git:https://a.io", GIT),
        ("git:https://a.io/#main", GIT),
        ("git:https://a.io/repo#-x", NO_REF),
        ("git:https://a.io/repo#a..b", NO_REF),
        ("git:https://a.io/repo#a/.b", NO_REF),
        ("git:https://a.io/repo#a b", NO_REF),
        ("git:https://a.io/repo#a@{1}", NO_REF),
        ("git:https://a.io/repo#/a", NO_REF),
        ("git:https://a.io/repo#a.lock", NO_REF),
        ("git:https://a.io/repo#HEAD~1", NO_REF),
        ("git:https://a.io/repo#a\nb", NO_REF),
        ("git:https://a.io/repo#main:../configs", "leads out"),
        ("git:https://a.io/repo#main:a\u{1b}", "control characters"),
        // No error repeats a secret.
        ("https://robot:hunter2@a.io/c.tar", SECRET),
        ("https://robot:hunter2@x@a.io/c.tar", SECRET),
        ("https://a.io/c.tar?sig=hunter2", SECRET),
        ("https://a.io/c.tar?sig=hunter2#a", SECRET),
        ("https://a.io:bad/c.tar?sig=hunter2", "not a URL"),
        ("https://robot:hunter2@:bad/c.tar", "not a URL"),
        ("git:https://robot:hunter2@a.io/repo#main:configs", SECRET),
        ("git:https://a.io/repo?token=hunter2", SECRET),
        (
            "mirror:https://robot:hunter2@a.io/catalogs/demo",
            "docker://",
        ),
        ("ftp://robot:hunter2@a.io/c:v1", "unknown scheme"),
        ("docker://robot:hunter2@a.io/c:v1", "malformed digest"),
        ("robot:hunter2@a.io/c:v1", "malformed digest"),
        ("oci+https://robot:hunter2/@a.io/c", "unknown scheme"),
        // A bundle of a catalog names its image.
        ("a.io/c\u{1b}[2J\u{202e}\n", "not an image reference"),
    ] {
        let error = text.parse::<Source>().unwrap_err().to_string();
        let is_printable = !error.contains(is_unprintable);
        assert!(
            error.contains(hint) && !error.contains("hunter2") && is_printable,
            "{text:?}: {error}"
        );
    }
}

#[test]
fn reference_accepts_what_oci_client_accepts() {
    let accepted_or_not = "quay.io/a:v1 quay.io/a/b/c:v1.2-x_Y docker.io/a:v1 index.docker.io/a/b:v1 \
         localhost:5000/a__b.c---d:v1 QUAY.io/a:1 quay.io/A:v1 quay.io/a..b:v1 quay.io/a___b:v1 quay.io/a._b:v1 \
         quay.io/-a:v1 quay.io/a-:v1 quay.io/a//b:v1 quay.io/a/:v1 quay.io/a: quay.io/a:.v1 quay.io/a:v1:v2 \
         -quay.io/a:v1 quay..io/a:v1 quay.io:x/a:v1 quay.io:+80/a:v1 quay.io/\u{e9}:v1 quay.io/../etc:v1";
    for text in accepted_or_not.split(' ').chain(["quay.io/a:v 1"]) {
        let ours = match text.parse() {
            Ok(Source::Registry { reference, .. }) => Some(reference),
            _ => None,
        };
        let theirs: Option<Reference> = text.parse().ok();
        assert_eq!(ours, theirs, "{text}");
    }
}
