//! Exactly the limit passes, one more is an error that names the limit, its value and where.

use std::sync::Arc;

use render::{Limits, Nothing, RenderError, Renderer, Settings};

type Files<'a> = &'a [(&'a str, &'a str)];

fn render(files: Files<'_>, limits: Limits) -> Result<usize, RenderError> {
    // With one worker the files come in order, so it is the last one that exceeds a limit.
    let settings = Settings {
        limits,
        workers: 1,
        ..Settings::default()
    };
    let mut renderer = Renderer::start(settings, Arc::new(Nothing));
    for (path, content) in files {
        match content.strip_prefix("-> ") {
            Some(target) => renderer.link(path, target),
            None => renderer.file(path, &mut content.as_bytes()).unwrap(),
        }
    }
    renderer.finish().map(|rendering| rendering.packages().count())
}

type Set = fn(&mut Limits, u64);

/// The limit, what exactly passes, how it is set, and where it is exceeded by one.
type Row<'a> = (&'a str, u64, Set, &'a str, Files<'a>);

const A: &str = "{\"schema\":\"olm.package\",\"name\":\"a\"}";
const B: &str = "{\"schema\":\"olm.package\",\"name\":\"b\"}";

#[test]
fn limits_are_exact() {
    let documents: Set = |limits, to| limits.documents = to;
    let packages: Set = |limits, to| limits.packages = to;
    let content_bytes: Set = |limits, to| limits.content_bytes = to;
    let name_bytes: Set = |limits, to| limits.name_bytes = to;
    let ignore_bytes: Set = |limits, to| limits.ignore_bytes = to;
    let line = A.len() as u64 + 1;
    let rows: &[Row<'_>] = &[
        (
            "documents",
            3,
            documents,
            "x.json",
            &[("x.json", "{\"a\":1}{\"a\":2}{\"a\":3}")],
        ),
        ("documents", 2, documents, "l", &[("a", A), ("l", "-> a")]),
        ("documents", 2, documents, "b", &[("a", A), ("b", B)]),
        (
            "documents",
            2,
            documents,
            "bad",
            &[("a", A), ("bad", "["), (".indexignore", "bad")],
        ),
        (
            "packages",
            2,
            packages,
            "b",
            &[("x", A), ("y", B), ("z", "{\"schema\":\"global\"}")],
        ),
        ("contentBytes", line, content_bytes, "a", &[("a", A)]),
        ("contentBytes", 2 * line, content_bytes, "l", &[("a", A), ("l", "-> a")]),
        ("nameBytes", 12, name_bytes, "a", &[("a", A)]),
        (
            "nameBytes",
            9,
            name_bytes,
            "a",
            &[("a", "{\"schema\":\"abc\",\"package\":\"def\",\"name\":\"ghi\"}")],
        ),
        (
            "ignoreBytes",
            10,
            ignore_bytes,
            "d/.indexignore",
            &[(".indexignore", "*.md\n"), ("d/.indexignore", "x.md\n")],
        ),
    ];
    for (name, exact, set, place, files) in rows {
        let at = |value| {
            let mut limits = Limits::default();
            set(&mut limits, value);
            render(files, limits)
        };
        assert!(at(*exact).is_ok(), "{name}: {:?}", at(*exact));
        match at(exact - 1) {
            Err(RenderError::Limit(limit)) => {
                assert_eq!((limit.name, limit.limit), (*name, exact - 1), "{limit}");
                assert_eq!(limit.place, *place, "{limit}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_document_beyond_its_limit_is_a_problem_of_its_file() {
    let limits = |document_bytes| Limits {
        document: fbc::Limits {
            document_bytes,
            ..fbc::Limits::default()
        },
        ..Limits::default()
    };
    let files: Files<'_> = &[("a", A), ("d/b.json", B)];
    assert_eq!(render(files, limits(A.len())).unwrap(), 2);
    let error = render(&files[1..], limits(A.len() - 1)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("d/b.json: document 1, line 1: exceeds the limit documentBytes of "),
        "{text}"
    );
}

#[test]
fn errors_repeat_little_of_what_is_wrong() {
    let huge = format!("{{\"v\":1e{}}}", "9".repeat(1 << 20));
    let text = render(&[("a", &huge)], Limits::default()).unwrap_err().to_string();
    assert!(text.len() < 1000, "{}", text.len());
}
