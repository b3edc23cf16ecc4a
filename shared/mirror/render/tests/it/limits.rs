//! Exactly the limit passes, one more is an error that names the limit, its value and where.

use std::sync::Arc;

use render::{NoStoredShards, RenderError, RenderLimits, RenderSettings, Renderer};
use work::{Budget, DEFAULT_STEPS, MemoryPool};

use crate::kit::try_render;

fn render<T: AsRef<str>>(files: &[(&str, T)], limits: RenderLimits) -> Result<usize, RenderError> {
    // With one worker the files come in order, so it is the last one that exceeds a limit.
    let settings = RenderSettings {
        budget: Budget::new(limits.steps, MemoryPool::default()),
        limits,
        workers: 1,
        ..RenderSettings::default()
    };
    let rendering = try_render(files, Arc::new(NoStoredShards), settings)?;
    Ok(rendering.packages().count())
}

const A: &str = "{\"schema\":\"olm.package\",\"name\":\"a\"}";
const B: &str = "{\"schema\":\"olm.package\",\"name\":\"b\"}";

/// The limit, what exactly passes, where it is exceeded by one, and the files: `PATH CONTENT`, with
/// `|` between, and `⏎` for a line feed. The line of `A` has 36 bytes.
const LIMITS: &str = r#"
documents / 3 / x.json / x.json {"a":1}{"a":2}{"a":3}
documents / 2 / l / a A|l -> a
documents / 2 / b / a A|b B
documents / 2 / bad / a A|bad [|.indexignore bad
packages / 2 / b / x A|y B|z {"schema":"global"}
contentBytes / 36 / a / a A
contentBytes / 72 / l / a A|l -> a
nameBytes / 12 / a / a A
nameBytes / 9 / a / a {"schema":"abc","package":"def","name":"ghi"}
ignoreBytes / 8 / d/.indexignore / .indexignore *.md|d/.indexignore x.md
ignorePatterns / 2 / .indexignore / a A|.indexignore c⏎d
"#;

#[test]
fn limits_are_exact() {
    for row in LIMITS.trim().lines() {
        let [name, exact, place, files] = row.splitn(4, " / ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let exact: u64 = exact.parse().unwrap();
        let files = files.split('|').map(|file| file.split_once(' ').unwrap());
        let content = |text: &str| match text {
            "A" => A.to_owned(),
            "B" => B.to_owned(),
            other => other.replace('⏎', "\n"),
        };
        let files: Vec<_> = files.map(|(path, text)| (path, content(text))).collect();
        let at = |value| {
            let mut limits = RenderLimits::default();
            match name {
                "documents" => limits.documents = value,
                "packages" => limits.packages = value,
                "contentBytes" => limits.content_bytes = value,
                "nameBytes" => limits.name_bytes = value,
                "ignoreBytes" => limits.ignore_bytes = value,
                _ => limits.ignore_patterns = value as usize,
            }
            render(&files, limits)
        };
        assert!(at(exact).is_ok(), "{row}: {:?}", at(exact));
        let error = at(exact - 1).unwrap_err();
        assert_eq!(error.limits(), [name].into(), "{row}");
        let RenderError::Limit(found) = error else {
            panic!("{row}: {error}")
        };
        assert_eq!((found.limit, &*found.place), (exact - 1, place), "{row}");
    }
}

#[test]
fn a_document_beyond_its_limit_is_a_problem_of_its_file() {
    let limits = |document_bytes| RenderLimits {
        document: fbc::FbcLimits {
            document_bytes,
            ..fbc::FbcLimits::default()
        },
        ..RenderLimits::default()
    };
    let files = [("a", A), ("d/b.json", B)];
    assert_eq!(render(&files, limits(A.len())).unwrap(), 2);
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
    let error = render(&[("a", &huge)], RenderLimits::default()).unwrap_err();
    assert!(error.to_string().len() < 1000, "{error}");
}

#[test]
fn steps_of_ignore_files_are_a_limit_of_the_catalog() {
    let limits = |steps| RenderLimits {
        steps,
        ..RenderLimits::default()
    };
    let files = [("a", A), ("b", B), (".indexignore", "c\nd\n")];
    assert_eq!(render(&files, limits(1000)).unwrap(), 2);
    let error = render(&files, limits(3)).unwrap_err();
    assert_eq!(error.limits(), ["steps"].into());
}

#[test]
fn excludes_beyond_the_limit_of_steps_fails_the_catalog() {
    let settings = RenderSettings {
        budget: Budget::new(100, MemoryPool::default()),
        ..RenderSettings::default()
    };
    let mut renderer = Renderer::start(settings, Arc::new(NoStoredShards));
    renderer
        .file(".indexignore", &mut "x*y\n".as_bytes())
        .unwrap();
    let excluded = (0..1000)
        .filter(|link| renderer.excludes(&format!("link{link}")))
        .count();
    assert!((900..1000).contains(&excluded), "{excluded}");
    let error = renderer.finish().err().unwrap();
    assert_eq!(error.limits(), ["steps"].into());
}

#[test]
fn stopped_work_ends_without_waiting_for_memory() {
    let settings = RenderSettings::default();
    let budget = settings.budget.clone();
    let mut renderer = Renderer::start(settings, Arc::new(NoStoredShards));
    renderer.file("a", &mut A.as_bytes()).unwrap();
    budget.stop();
    assert!(renderer.file("b", &mut B.as_bytes()).is_err());
    assert!(matches!(renderer.finish(), Err(RenderError::Stopped)));
}

#[test]
fn memory_is_given_back_when_the_files_are_parsed() {
    let settings = RenderSettings::default();
    let memory = settings.budget.memory().clone();
    let mut renderer = Renderer::start(settings, Arc::new(NoStoredShards));
    for name in ["a", "b"] {
        renderer.file(name, &mut A.as_bytes()).unwrap();
    }
    drop(renderer);
    assert_eq!(memory.taken(), 0);
}

#[test]
fn document_that_never_fits_into_the_budget_is_refused() {
    let settings = RenderSettings {
        budget: Budget::new(DEFAULT_STEPS, MemoryPool::new(8000)),
        ..RenderSettings::default()
    };
    let large = format!("{{\"schema\":\"{}\"}}", "x".repeat(1000));
    let error = try_render(&[("large", &large)], Arc::new(NoStoredShards), settings)
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(
        text.contains("exceeds the limit memoryBytes of 8000"),
        "{text}"
    );
    assert_eq!(error.limits(), ["memoryBytes"].into());
}
