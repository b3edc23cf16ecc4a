use std::collections::{BTreeMap, BTreeSet};

use operators::{Need, Needs, Reference};
use serde::Serialize;

use super::{imageset, imageset::Chosen, print_json, print_text, print_yaml};
use crate::cli::ImagesFormat;

/// What a registry says of an image.
pub(crate) enum Answer {
    /// It is there.
    There,
    /// It is not.
    Missing,
    /// It could not be asked, or refuses to say.
    Unknown(String),
}

/// By reference.
pub(crate) type Answers = BTreeMap<String, Answer>;

/// Prints the images as asked for.
pub(crate) fn print(
    format: ImagesFormat,
    needs: &Needs,
    catalogs: &[Chosen],
    answers: Option<&Answers>,
) -> anyhow::Result<()> {
    match format {
        ImagesFormat::List => {
            let lines: Vec<String> = needs.iter().map(|(image, _)| format!("{image}\n")).collect();
            print_text(&lines.concat())
        }
        ImagesFormat::Json => print_json(&document(needs, answers)),
        ImagesFormat::SkopeoSync => print_yaml(&[skopeo(needs)]),
        ImagesFormat::Imageset => print_yaml(&[imageset::document(catalogs)]),
    }
}

/// Tells people of what is not there, and whether anything is.
pub(crate) fn tell_missing(needs: &Needs, answers: &Answers) -> bool {
    let mut missing = false;
    for (image, needed_by) in needs.iter() {
        let what = match answers.get(image) {
            Some(Answer::There) | None => continue,
            Some(Answer::Missing) => "missing".to_owned(),
            Some(Answer::Unknown(error)) => format!("unknown ({error})"),
        };
        missing = true;
        let bundles: BTreeSet<&str> = needed_by.iter().map(|need| need.bundle.as_str()).collect();
        let bundles: Vec<&str> = bundles.into_iter().collect();
        eprintln!("{what}: {image}, needed by {}", bundles.join(", "));
    }
    missing
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    format_version: u32,
    images: Vec<Line<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    image: &'a str,
    /// Only with --check; null if the registry could not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    exists: Option<Option<bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    needed_by: &'a BTreeSet<Need>,
}

fn document<'a>(needs: &'a Needs, answers: Option<&'a Answers>) -> Document<'a> {
    let line = |(image, needed_by)| {
        let answer = answers.and_then(|answers| answers.get(image));
        let (exists, error) = match answer {
            None => (None, None),
            Some(Answer::There) => (Some(Some(true)), None),
            Some(Answer::Missing) => (Some(Some(false)), None),
            Some(Answer::Unknown(error)) => (Some(None), Some(error.as_str())),
        };
        Line {
            image,
            exists,
            error,
            needed_by,
        }
    };
    Document {
        format_version: 1,
        images: needs.iter().map(line).collect(),
    }
}

/// skopeo-sync(1), "YAML file content": repositories by registry, and of each the tags and digests. No list may be
/// empty: that would mean all tags.
#[derive(Default, Serialize)]
struct SkopeoRegistry {
    images: BTreeMap<String, BTreeSet<String>>,
}

fn skopeo(needs: &Needs) -> BTreeMap<String, SkopeoRegistry> {
    let mut registries: BTreeMap<String, SkopeoRegistry> = BTreeMap::new();
    for (image, _) in needs.iter() {
        let reference = Reference::new(image);
        let registry = registries.entry(reference.registry).or_default();
        let versions = registry.images.entry(reference.repository).or_default();
        versions.insert(reference.version);
    }
    registries
}

#[cfg(test)]
mod tests {
    use operators::{Choice, Reader};

    use super::*;

    /// Tags that look like numbers stay texts, and there is no empty list.
    #[test]
    fn skopeo_gets_tags_and_digests_by_registry() {
        let bundle = |at: usize, image: &str| format!(r#"{{"image":"{image}","name":"b{at}","schema":"olm.bundle"}}"#);
        let images = [
            "q.io/a/b:1.0",
            "q.io/a/b:012",
            "q.io/a/b:1e5",
            "q.io/a/b@sha256:00",
            "nginx",
        ];
        let lines: Vec<String> = images.iter().enumerate().map(|(at, image)| bundle(at, image)).collect();
        let mut needs = Needs::default();
        let package = Reader::read(lines.join("\n").as_bytes());
        needs.add("c", "p", &package, &Choice::default()).unwrap();
        insta::assert_snapshot!(crate::output::yaml(&[skopeo(&needs)]).unwrap(), @r#"
        docker.io:
          images:
            library/nginx:
            - latest
        q.io:
          images:
            a/b:
            - "012"
            - "1.0"
            - "1e5"
            - sha256:00
        "#);
    }
}
