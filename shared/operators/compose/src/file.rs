//! Files that describe compositions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;

use model::{
    CatalogName, ImageReference, is_lower_alphanumeric, is_plain_name, text, yaml::plain_error,
};
use regex_lite::{Regex, RegexBuilder};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::error::TEXT_CHARS;
use crate::template::TemplateFile;
use crate::{
    ComposeError, Composition, CompositionInput, DependencyRule, PackageSelection, Selection,
};

/// Content of a file that describes compositions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposeFile {
    /// One composition, in the form of `compose:` in `catalogs.yaml`.
    Composition(Composition),
    /// ImageSetConfiguration of oc-mirror v2.
    ImageSet(ImageSet),
    /// FilterConfiguration. It names no catalog, so the caller adds one.
    Filter(Selection),
}

/// Content of an ImageSetConfiguration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSet {
    /// One catalog for each entry of `mirror.operators`, in the order of the file.
    pub entries: Vec<ImageSetEntry>,
    /// Images that must not be copied.
    pub blocked: BlockedImages,
    /// References of the images that are copied beside those of the catalogs.
    pub additional: Vec<AdditionalImage>,
    /// Sections that are the work of oc-mirror, by name.
    pub rest: BTreeMap<&'static str, Value>,
    /// Names of the other sections and fields that the mirror does not use.
    pub ignored: Vec<&'static str>,
}

/// Catalog of an ImageSetConfiguration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSetEntry {
    /// Name of the catalog in the mirror.
    pub name: CatalogName,
    /// Repository and tag of its image in the registry of a site, as oc-mirror v2 chooses them,
    /// such as `redhat/redhat-operator-index:v4.20`.
    pub target: String,
    /// Platforms of the images to copy, each `os/architecture`; all if empty.
    pub platforms: BTreeSet<String>,
    /// Selection from its image.
    pub composition: Composition,
    template: Option<TemplateFile>,
}

/// Images that must not be copied, as regular expressions that match any part of a reference.
#[derive(Debug, Clone, Default)]
pub struct BlockedImages(Vec<Regex>);

/// Image of `mirror.additionalImages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdditionalImage {
    /// Reference of the image, as the file writes it.
    pub name: String,
    /// Repository in the registry of a site, if it is not that of other images.
    pub target_repository: Option<String>,
    /// Tag in the registry of a site. Default: the tag of the reference.
    pub target_tag: Option<String>,
    /// Platforms to copy, each `os/architecture`; all if empty.
    pub platforms: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileHeader {
    api_version: Option<String>,
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FilterFields {
    #[serde(rename = "apiVersion")]
    _api_version: IgnoredAny,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    #[serde(default)]
    packages: Vec<PackageSelection>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ImageSetFields {
    #[serde(rename = "apiVersion")]
    _api_version: Option<IgnoredAny>,
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    mirror: MirrorFields,
    archive_size: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct MirrorFields {
    operators: Vec<OperatorFields>,
    platform: Option<Value>,
    additional_images: Vec<AdditionalImageFields>,
    helm: Option<Value>,
    blocked_images: Vec<BlockedImageFields>,
    samples: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AdditionalImageFields {
    name: Spanned<String>,
    #[serde(default)]
    target_repo: String,
    #[serde(default)]
    target_tag: String,
    #[serde(default)]
    platforms: Vec<PlatformFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlatformFields {
    os: String,
    architecture: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockedImageFields {
    name: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperatorFields {
    catalog: Spanned<String>,
    #[serde(default)]
    target_catalog: String,
    #[serde(default)]
    target_tag: String,
    #[serde(default)]
    full: bool,
    #[serde(default)]
    packages: Vec<PackageSelection>,
    #[serde(default)]
    skip_dependencies: bool,
    target_catalog_source_template: Option<Spanned<String>>,
    #[serde(default)]
    platforms: Vec<PlatformFields>,
}

/// Fields of oc-mirror v1 and their place in v2.
const OLD_FIELDS: &[(&str, &str)] = &[
    ("apiVersion", "write mirror.openshift.io/v2alpha1"),
    ("storageConfig", "remove it: oc-mirror v2 keeps no metadata"),
    ("targetName", "write targetCatalog"),
    ("startingVersion", "write minVersion"),
    ("minBundle", "write minVersion"),
    (
        "headsOnly",
        "write full: true for headsOnly: false, else remove it",
    ),
    ("originalRef", "remove it"),
    ("ocp", "write platform"),
];

impl ComposeFile {
    /// Parses the text of a file. Its `kind` tells the format; a composition has none.
    ///
    /// # Errors
    /// Names the line of what is malformed, unknown or ambiguous.
    pub fn parse(text: &str) -> Result<Self, ComposeError> {
        let text = without_end(text);
        let header: FileHeader = read(text)?;
        let Some(kind) = header.kind else {
            return read(text).map(Self::Composition);
        };
        let version = header.api_version.unwrap_or_default();
        match (kind.as_str(), version.as_str()) {
            // oc-mirror v2 reads a file without a version too.
            ("ImageSetConfiguration", "mirror.openshift.io/v2alpha1" | "") => {
                image_set(text).map(Self::ImageSet)
            }
            ("ImageSetConfiguration", "mirror.openshift.io/v1alpha2") => Err(old_format(text)),
            ("FilterConfiguration", "olm.operatorframework.io/filter/mirror/v1alpha1") => {
                let FilterFields { packages, .. } = read(text)?;
                Ok(Self::Filter(Selection {
                    full: false,
                    packages,
                }))
            }
            _ => Err(ComposeError::Refused(format!(
                "{kind} of {version:?} is not known: use ImageSetConfiguration of mirror.openshift.io/v2alpha1, \
                 FilterConfiguration of olm.operatorframework.io/filter/mirror/v1alpha1, or a composition without kind"
            ))),
        }
    }
}

impl ImageSet {
    /// Returns the entry with this name, or the only one.
    ///
    /// # Errors
    /// Lists the names if none fits, or if several do.
    pub fn entry(self, name: Option<&str>) -> Result<ImageSetEntry, ComposeError> {
        let mut names = Vec::new();
        let mut found = Vec::new();
        for entry in self.entries {
            names.push(entry.name.to_string());
            if name.is_none_or(|name| name == entry.name.as_str()) {
                found.push(entry);
            }
        }
        if found.len() == 1 {
            return Ok(found.remove(0));
        }
        if names.is_empty() {
            let problem = "mirror.operators has no entry";
            return Err(ComposeError::Refused(problem.to_owned()));
        }
        let entries = match name {
            Some(name) => format!("no entry {name}"),
            None => "several entries".to_owned(),
        };
        let problem = format!("the file has {entries}: choose one of {}", names.join(", "));
        Err(ComposeError::Refused(problem))
    }

    /// Returns the names of the sections and fields that the mirror does not use.
    pub fn unused(&self) -> Vec<&'static str> {
        self.rest.keys().chain(&self.ignored).copied().collect()
    }
}

impl ImageSetEntry {
    /// Reads the template of its CatalogSource, if it names one. A relative path starts at `folder`,
    /// that of the ImageSetConfiguration.
    ///
    /// # Errors
    /// Names the line of what is no template.
    pub fn read_template(&mut self, folder: &Path) -> Result<(), ComposeError> {
        if let Some(template) = &self.template {
            self.composition.catalog_source = Some(template.read(folder)?);
        }
        Ok(())
    }
}

/// Returns the text without document ends behind its last line, which hold no document.
pub(crate) fn without_end(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) = text.strip_suffix("\n---").or(text.strip_suffix("\n...")) {
        text = rest.trim_end();
    }
    text
}

pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ComposeError> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        // The default message speaks to programmers, and names options that users do not have.
        let message = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        let Some(location) = error.location() else {
            return ComposeError::Refused(message);
        };
        let line = location.line();
        let place = format!(" at line {line}, column {}", location.column());
        let problem = plain_error(message.trim_end_matches(&place));
        let message = match key_before(text, line, location.column()) {
            Some(key) if !problem.contains(&key) => format!("{key}: {problem}"),
            _ => problem,
        };
        at_line(line, &message)
    })
}

/// Returns the key of the value that begins at a column of a line; `None` if the key stands in another
/// line.
fn key_before(text: &str, line: u64, column: u64) -> Option<String> {
    let (text, _) = text.lines().zip(1..).find(|(_, number)| *number == line)?;
    let before = text.chars().zip(1..).take_while(|(_, at)| *at < column);
    let before: String = before.map(|(c, _)| c).collect();
    let (key, _) = before.rsplit_once(':')?;
    let key = key.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
    some_text(key.to_owned())
}

fn image_set(text: &str) -> Result<ImageSet, ComposeError> {
    let file: ImageSetFields = read(text)?;
    let mirror = file.mirror;
    let mut ignored = Vec::new();
    for (name, is_there) in [
        ("samples", mirror.samples.is_some()),
        ("archiveSize", file.archive_size.is_some()),
    ] {
        if is_there {
            ignored.push(name);
        }
    }
    let mut rest = BTreeMap::new();
    for (name, section) in [("platform", mirror.platform), ("helm", mirror.helm)] {
        if let Some(section) = section.filter(|section| !is_empty(section)) {
            rest.insert(name, section);
        }
    }
    let mut blocked = Vec::new();
    for image in mirror.blocked_images {
        let line = image.name.referenced.line();
        let expression = expression(&image.name.value);
        blocked.push(expression.map_err(|problem| at_line(line, &problem))?);
    }
    Ok(ImageSet {
        entries: entries(mirror.operators)?,
        blocked: BlockedImages(blocked),
        additional: additional_images(mirror.additional_images)?,
        rest,
        ignored,
    })
}

/// Returns true for a section without content, which oc-mirror takes for none.
fn is_empty(section: &Value) -> bool {
    section.is_null() || section.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Maximum memory of one regular expression, in bytes. Those of people take a few kilobytes.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;

fn expression(written: &str) -> Result<Regex, String> {
    if written.is_empty() {
        return Err("blockedImages: an empty name blocks every image: remove it".to_owned());
    }
    let built = RegexBuilder::new(written)
        .size_limit(EXPRESSION_BYTES_MAX)
        .build();
    built.map_err(|error| {
        let written = text::line(written, TEXT_CHARS);
        let error = text::line(&error.to_string(), TEXT_CHARS);
        format!("blockedImages: {written:?} is no regular expression: {error}")
    })
}

impl BlockedImages {
    /// Returns the expression that blocks an image, if there is one.
    pub fn blocking(&self, reference: &str) -> Option<&str> {
        let image = ImageReference::new(reference).to_string();
        let written = reference.trim().trim_start_matches("docker://");
        let mut expressions = self.0.iter();
        let found = expressions
            .find(|expression| expression.is_match(written) || expression.is_match(&image));
        found.map(Regex::as_str)
    }

    /// Returns true if no image is blocked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl PartialEq for BlockedImages {
    fn eq(&self, other: &Self) -> bool {
        let texts =
            |blocked: &Self| -> Vec<String> { blocked.0.iter().map(Regex::to_string).collect() };
        texts(self) == texts(other)
    }
}

impl Eq for BlockedImages {}

fn entries(operators: Vec<OperatorFields>) -> Result<Vec<ImageSetEntry>, ComposeError> {
    let mut entries = Vec::new();
    let mut names = BTreeSet::new();
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for operator in &operators {
        *uses.entry(operator.target_catalog.clone()).or_default() += 1;
    }
    for mut operator in operators {
        let line = operator.catalog.referenced.line();
        let target = Target::of(&operator).map_err(|problem| at_line(line, &problem))?;
        let has_namesakes = uses[&operator.target_catalog] > 1;
        let name = CatalogName::from_str(&target.catalog_name(&operator, has_namesakes))
            .map_err(|error| at_line(line, &error.to_string()))?;
        if !names.insert(name.clone()) {
            let message = format!(
                "two entries have the name {name}: set another targetCatalog or targetTag at one of them"
            );
            return Err(at_line(line, &message));
        }
        operator.packages.iter_mut().for_each(drop_empty_texts);
        let platforms =
            platforms(&operator.platforms).map_err(|problem| at_line(line, &problem))?;
        let template = TemplateFile::new(operator.target_catalog_source_template.take());
        let composition = composition(operator);
        composition
            .check()
            .map_err(|error| at_line(line, &error.to_string()))?;
        entries.push(ImageSetEntry {
            name,
            target: format!("{}:{}", target.repository, target.tag),
            platforms,
            composition,
            template,
        });
    }
    Ok(entries)
}

fn additional_images(
    images: Vec<AdditionalImageFields>,
) -> Result<Vec<AdditionalImage>, ComposeError> {
    let mut additional = Vec::new();
    for image in images {
        let line = image.name.referenced.line();
        let target_repository = some_text(image.target_repo);
        let target_tag = some_text(image.target_tag);
        let repository = target_repository.as_deref();
        if let Some(repository) = repository.filter(|repository| !is_path(repository)) {
            let problem = format!("targetRepo: {repository:?} is no path of a repository");
            return Err(at_line(line, &problem));
        }
        if let Some(tag) = target_tag.as_deref().filter(|tag| !is_tag(tag)) {
            return Err(at_line(line, &format!("targetTag: {tag:?} is no tag")));
        }
        let platforms = platforms(&image.platforms).map_err(|problem| at_line(line, &problem))?;
        additional.push(AdditionalImage {
            name: image.name.value,
            target_repository,
            target_tag,
            platforms,
        });
    }
    Ok(additional)
}

fn platforms(fields: &[PlatformFields]) -> Result<BTreeSet<String>, String> {
    let mut platforms = BTreeSet::new();
    for PlatformFields { os, architecture } in fields {
        if os.is_empty() || architecture.is_empty() {
            return Err("platforms: each has an os and an architecture, such as {os: linux, architecture: amd64}".to_owned());
        }
        platforms.insert(format!("{os}/{architecture}"));
    }
    Ok(platforms)
}

pub(crate) fn at_line(line: u64, message: &str) -> ComposeError {
    ComposeError::Refused(format!("line {line}: {message}"))
}

/// Repository and tag of a catalog in the registry of a site (oc-mirror v2 855b64a3,
/// `destCtlgRef`).
struct Target {
    repository: String,
    tag: String,
}

impl Target {
    fn of(operator: &OperatorFields) -> Result<Self, String> {
        let catalog = operator.catalog.value.as_str();
        let mut target = match layout(catalog) {
            Some(folder) => {
                let folder = folder.trim_end_matches('/');
                let name = folder.rsplit_once('/').map_or(folder, |(_, name)| name);
                Self {
                    repository: name.to_lowercase(),
                    tag: "latest".to_owned(),
                }
            }
            None => {
                let written = ImageReference::as_written(catalog);
                let tag = match (written.tag, written.digest) {
                    (Some(tag), _) => tag,
                    (None, Some(digest)) => digest.replace(':', "-"),
                    (None, None) => "latest".to_owned(),
                };
                Self {
                    repository: written.repository,
                    tag,
                }
            }
        };
        if !operator.target_catalog.is_empty() {
            target.repository.clone_from(&operator.target_catalog);
            if !is_path(&target.repository) {
                return Err(format!(
                    "targetCatalog: {:?} is no path of a repository, such as team/redhat-operator-index; a tag is written in targetTag",
                    target.repository
                ));
            }
        }
        if !operator.target_tag.is_empty() {
            target.tag.clone_from(&operator.target_tag);
            if !is_tag(&target.tag) {
                return Err(format!("targetTag: {:?} is no tag", target.tag));
            }
        }
        Ok(target)
    }

    /// Returns the name in the mirror: `targetCatalog`, with its tag if the file names one or if
    /// other entries have that `targetCatalog` too. Else the last part of the repository and the
    /// tag, if there is one.
    fn catalog_name(&self, operator: &OperatorFields, has_namesakes: bool) -> String {
        let written = ImageReference::as_written(&operator.catalog.value);
        let is_layout = layout(&operator.catalog.value).is_some();
        let has_tag = !operator.target_tag.is_empty() || (!is_layout && written.digest.is_none());
        let name = if operator.target_catalog.is_empty() {
            let last = self.repository.rsplit_once('/');
            let last = last.map_or(self.repository.as_str(), |(_, last)| last);
            match has_tag {
                true => format!("{last}-{}", self.tag),
                false => last.to_owned(),
            }
        } else if has_namesakes || !operator.target_tag.is_empty() {
            format!("{}-{}", self.repository, self.tag)
        } else {
            self.repository.clone()
        };
        name.to_lowercase().replace(['.', '/', '_', ':'], "-")
    }
}

/// Returns true for the path of a repository: parts of small letters and digits, with single dots,
/// underlines and dashes between them.
fn is_path(text: &str) -> bool {
    text.split('/').all(|part| {
        let mut chars = part.chars();
        chars.all(|c| is_lower_alphanumeric(c) || "._-".contains(c))
            && part.starts_with(is_lower_alphanumeric)
            && part.ends_with(is_lower_alphanumeric)
            && !part.contains("..")
    })
}

/// Returns true for a tag (OCI distribution specification, "Pulling manifests").
fn is_tag(text: &str) -> bool {
    text.len() <= 128 && is_plain_name(text)
}

fn some_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Removes empty texts, which oc-mirror takes for none.
fn drop_empty_texts(package: &mut PackageSelection) {
    for text in [
        &mut package.min_version,
        &mut package.max_version,
        &mut package.version_range,
        &mut package.default_channel,
    ] {
        text.take_if(|text| text.is_empty());
    }
    for channel in &mut package.channels {
        for text in [
            &mut channel.min_version,
            &mut channel.max_version,
            &mut channel.version_range,
        ] {
            text.take_if(|text| text.is_empty());
        }
    }
}

/// Returns the folder of an OCI layout, which oc-mirror writes as `oci://DIR`.
fn layout(catalog: &str) -> Option<&str> {
    let folder = catalog.strip_prefix("oci:")?;
    Some(folder.strip_prefix("//").unwrap_or(folder))
}

fn composition(operator: OperatorFields) -> Composition {
    let mut input = CompositionInput {
        catalog: None,
        source: None,
        select: Some(Selection {
            full: operator.full,
            packages: operator.packages,
        }),
    };
    let catalog = operator.catalog.value;
    match layout(&catalog) {
        Some(folder) => input.source = Some(format!("oci:{folder}")),
        None => input.catalog = Some(catalog),
    }
    let dependencies = if operator.skip_dependencies {
        DependencyRule::Ignore
    } else {
        DependencyRule::Warn
    };
    Composition {
        inputs: vec![input],
        dependencies,
        ..Composition::default()
    }
}

fn old_format(text: &str) -> ComposeError {
    let mut problem =
        "mirror.openshift.io/v1alpha2 is the format of oc-mirror v1; change these lines:"
            .to_owned();
    for (line, number) in text.lines().zip(1_u64..) {
        let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(':') else {
            continue;
        };
        if let Some((_, change)) = OLD_FIELDS.iter().find(|(field, _)| *field == key) {
            problem += &format!("\n  line {number}, {key}: {change}");
        }
    }
    ComposeError::Refused(problem)
}
