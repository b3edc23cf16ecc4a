//! The image config, whose labels name folders of the image.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ImageError, parse_document};
use crate::{Digest, ImageLimits, LABEL, NamedLimit, Root, clean_path, shown};

const DATABASE: &str = "operators.operatorframework.io.index.database.v1";

/// Content of an image, in folders that labels of its config name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ImageContent {
    /// Files of a catalog.
    #[default]
    Catalog,
    /// Manifests and metadata of a bundle.
    Bundle,
}

impl ImageContent {
    /// Returns the names of its folders where no labels name others: of a bundle first the one with
    /// the manifests, then the one with the metadata. The empty name is all of a source.
    pub const fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Catalog => &[""],
            Self::Bundle => &["manifests", "metadata"],
        }
    }
}

/// Returns the label that holds the path of a folder.
fn folder_label(folder: &str) -> String {
    match folder {
        "" => LABEL.to_owned(),
        folder => format!("operators.operatorframework.io.bundle.{folder}.v1"),
    }
}

#[derive(Deserialize)]
struct ImageConfig {
    config: Option<ConfigSection>,
}

#[derive(Deserialize)]
struct ConfigSection {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

/// Returns the root of the folders that an image config names.
///
/// # Errors
/// Configs without the labels, and labels that are too long or lead out of the image.
pub fn content_root(
    content: ImageContent,
    digest: &Digest,
    body: &[u8],
    limits: &ImageLimits,
) -> Result<Root, ImageError> {
    let document: ImageConfig = parse_document("config", digest, body)?;
    let labels = document.config.and_then(|config| config.labels);
    let labels = labels.unwrap_or_default();
    let mut folders = Vec::new();
    for folder in content.folders() {
        let name = folder_label(folder);
        let Some(label) = labels.get(&name) else {
            return Err(match content {
                ImageContent::Catalog if labels.contains_key(DATABASE) => ImageError::Sqlite,
                ImageContent::Catalog => ImageError::NoLabel,
                ImageContent::Bundle if labels.contains_key(LABEL) => {
                    ImageError::NotBundle(name, "a catalog and no bundle")
                }
                ImageContent::Bundle => ImageError::NotBundle(name, "no bundle"),
            });
        };
        NamedLimit::new("pathBytes", limits.path_bytes).check(label.len() as u64, || {
            format!("the label {name} of config {digest}")
        })?;
        let Some(parts) = clean_path(label) else {
            return Err(ImageError::RootEscapes(name, shown(label.as_bytes())));
        };
        folders.push(parts.into_iter().map(ToOwned::to_owned).collect());
    }
    Ok(Root::around(&folders))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(content: ImageContent, body: &str) -> String {
        let root = content_root(
            content,
            &Digest::of(b""),
            body.as_bytes(),
            &ImageLimits::default(),
        );
        root.map_or_else(
            |error| error.to_string(),
            |root| format!("{:?}", (root.path(), root.folders())),
        )
    }

    /// Labels of an image, as `NAME=VALUE`, and the root with the folders that are read, or a part
    /// of the error.
    const CATALOGS: &str = r#"
catalog=/configs => ("configs", [""])
catalog=/a//b/../c/ => ("a/c", [""])
catalog=/ => ("", [""])
catalog=configs => ("configs", [""])
catalog=./a/./b => ("a/b", [""])
catalog=a/../b => ("b", [""])
catalog=/../x => ("x", [""])
catalog= => ("", [""])
catalog=.. => leads out
catalog=a/../../b => leads out
catalog=/c database=/db => ("c", [""])
catalog=../x => leads out
database=/db => sqlite
other=x => not a file-based catalog
"#;

    const BUNDLES: &str = r#"
manifests=manifests/ metadata=metadata/ => ("", ["manifests", "metadata"])
manifests=/a/b/c metadata=a/b => ("a/b", ["c", ""])
manifests=a/ metadata=a => ("a", ["", ""])
manifests=a metadata=../a => bundle.metadata.v1 leads out of the image
manifests=a => it is no bundle
catalog=/a => it is a catalog and no bundle
other=x => it is no bundle
"#;

    #[test]
    fn root_follows_from_labels() {
        for (content, table) in [
            (ImageContent::Catalog, CATALOGS),
            (ImageContent::Bundle, BUNDLES),
        ] {
            for row in table.trim().lines() {
                let (labels, expected) = row.split_once(" => ").unwrap();
                let labels = labels
                    .split(' ')
                    .map(|label| label.split_once('=').unwrap());
                let name = |name: &str| match name {
                    "catalog" => LABEL.to_owned(),
                    "database" => DATABASE.to_owned(),
                    other => folder_label(other),
                };
                let labels: serde_json::Value =
                    labels.map(|(label, value)| (name(label), value)).collect();
                let root = root_of(
                    content,
                    &serde_json::json!({"config": {"Labels": labels}}).to_string(),
                );
                assert!(root.contains(expected), "{row}: {root}");
            }
        }
    }

    #[test]
    fn root_without_labels_names_kind_of_image() {
        for body in [r#"{"config":{"Labels":null}}"#, "{}"] {
            assert!(root_of(ImageContent::Catalog, body).contains("not a file-based catalog"));
        }
    }
}
