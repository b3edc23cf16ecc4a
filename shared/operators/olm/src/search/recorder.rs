use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::mem;

use base64::{Engine, engine::general_purpose::STANDARD};
use model::text::{self, LineBuffer};
use model::{IndexedMeta, SearchPackage, SupportPhase};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::words::words;
use crate::facts::{FactKind, Recorder, is_json, json};
use crate::parser::OlmPackage;
use crate::{BundleFields, Icon, IconKind, LIFECYCLES, Lifecycle, PackageParser, PropertyFields};

/// Texts by which Packages are found, each a [`SearchPackage`].
pub const SEARCH: FactKind = FactKind {
    name: "search",
    version: 7,
    recorder: |shard| {
        Box::new(SearchRecorder {
            name: shard.name,
            // The global group is no Package, so none of its lines is read.
            metas: if shard.name.is_empty() {
                &[]
            } else {
                shard.metas
            },
            ..SearchRecorder::default()
        })
    },
    is_part: is_json::<SearchPackage>,
    bytes_max: 2 << 20,
    // The Package is then found by its name.
    shorten: |_| json(&SearchPackage::default()),
};

/// Maximum length of a line of OLM's graph that is read, in bytes. Its entries take several times
/// as much memory; real channels have a tenth of it.
const GRAPH_LINE_MAX: u64 = 1 << 20;

/// Maximum length of the line of a bundle that is read, in bytes. The largest real one has an
/// eighth of it.
const BUNDLE_LINE_MAX: u64 = 8 << 20;

/// Maximum number of characters of a text for people.
const TEXT_CHARS: usize = 200;

/// Maximum number of categories and of CPUs, which each answer shows.
const LIST_MAX: usize = 100;

/// Maximum size of the keywords, kinds and words of one Package, in bytes: ten times those of the
/// largest real one.
const WORDS_BYTES: usize = 64 << 10;

/// Maximum number of phases of support. Real versions have three.
const PHASES_MAX: usize = 20;

/// Prefix of the labels by which a bundle names its CPUs.
const ARCH_LABEL: &str = "operatorframework.io/arch.";

/// Reader of the lines of a Shard, which takes the texts of one Package. Lines that do not fit
/// their schema, or that are very long, are as if they were absent: the Package is then found by
/// its name.
#[derive(Default)]
struct SearchRecorder<'a> {
    name: &'a str,
    metas: &'a [IndexedMeta],
    /// Lines that were passed.
    at: usize,
    buffer: LineBuffer,
    package: OlmPackage,
    icon: Option<IconKind>,
    is_deprecated: bool,
    /// Documents of support. Two of them contradict each other, so they count as none.
    lifecycles: Vec<Lifecycle>,
    /// Head of each channel.
    heads: HashMap<String, String>,
    /// Head of the default channel: looked up when it may change, because the name of the channel
    /// may have megabytes.
    default_head: Option<String>,
    /// Head whose line was read, and its texts.
    head: Option<(String, HeadTexts)>,
    /// True in the second pass, in which only the line of the head is read.
    is_last: bool,
}

#[derive(Default)]
struct HeadTexts {
    version: String,
    kinds: Vec<String>,
    csv: CsvTexts,
}

/// Texts of a ClusterServiceVersion, from `olm.csv.metadata` or from the `spec` of the document
/// itself.
// In all of these, `null` is an absent value, as in Go.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CsvTexts {
    annotations: Option<CsvAnnotations>,
    labels: Option<HashMap<String, String>>,
    display_name: Option<String>,
    description: Option<String>,
    keywords: Option<Vec<String>>,
    provider: Option<CsvProvider>,
}

#[derive(Default, Deserialize)]
struct CsvAnnotations {
    categories: Option<String>,
    capabilities: Option<String>,
    description: Option<String>,
}

#[derive(Default, Deserialize)]
struct CsvProvider {
    name: Option<String>,
}

/// A whole ClusterServiceVersion, as an `olm.bundle.object` holds it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CsvDocument {
    kind: String,
    /// Only its annotations and labels count.
    metadata: CsvTexts,
    spec: CsvTexts,
}

#[derive(Deserialize)]
struct KindProperty {
    kind: String,
}

#[derive(Deserialize)]
struct ObjectProperty<'a> {
    #[serde(borrow)]
    data: Cow<'a, str>,
}

impl Recorder for SearchRecorder<'_> {
    fn push(&mut self, lines: &[u8]) {
        let mut buffer = mem::take(&mut self.buffer);
        buffer.push(lines, |line| self.line(line));
        self.buffer = buffer;
    }

    fn finish(&mut self) -> Option<Box<RawValue>> {
        let head = self.head.as_ref().map(|(head, _)| head);
        if self.default_head.is_none() || self.default_head.as_ref() == head || self.is_last {
            let is_package = !self.name.is_empty();
            return Some(json(&is_package.then(|| mem::take(self).texts())));
        }
        // The line of the head came before its channel.
        self.at = 0;
        self.head = None;
        self.is_last = true;
        self.buffer = LineBuffer::default();
        None
    }
}

impl SearchRecorder<'_> {
    fn line(&mut self, line: &[u8]) {
        let Some(meta) = self.metas.get(self.at) else {
            return;
        };
        self.at += 1;
        let is_of_graph = meta.length <= GRAPH_LINE_MAX && !self.is_last;
        let head = self.head.as_ref().map(|(head, _)| head);
        let is_head = head.or(self.default_head.as_ref()) == Some(&meta.name);
        match meta.schema.as_str() {
            "olm.package" if is_of_graph => {
                self.package = serde_json::from_slice(line).unwrap_or_default();
                self.icon = Icon::read(line).map(|icon| icon.kind);
                self.default_head = self.heads.get(self.package.default_channel()).cloned();
            }
            "olm.channel" if is_of_graph => {
                let channels = PackageParser::parse(line).channels;
                let heads = channels.values().flat_map(|channel| channel.heads());
                // Of several heads the first by name.
                let Some(head) = heads.map(str::to_owned).next() else {
                    return;
                };
                if meta.name == self.package.default_channel() {
                    self.default_head = Some(head.clone());
                }
                self.heads.insert(meta.name.clone(), head);
            }
            "olm.deprecations" if is_of_graph => {
                let deprecations = PackageParser::parse(line);
                self.is_deprecated |= deprecations.deprecation("olm.package", "").is_some();
            }
            LIFECYCLES if is_of_graph && self.lifecycles.len() < 2 => {
                let lifecycle = serde_json::from_slice(line);
                self.lifecycles.push(lifecycle.unwrap_or_default());
            }
            "olm.bundle" if is_head && meta.length <= BUNDLE_LINE_MAX => {
                self.head = Some((meta.name.clone(), HeadTexts::read(line)));
            }
            _ => {}
        }
    }

    fn texts(self) -> SearchPackage {
        let head = self.head.map(|(_, texts)| texts).unwrap_or_default();
        let HeadTexts {
            version,
            kinds,
            csv,
        } = head;
        let support = support(&self.lifecycles, &version);
        let annotations = csv.annotations.unwrap_or_default();
        let provider = csv
            .provider
            .and_then(|provider| provider.name)
            .unwrap_or_default();
        let display_name = csv.display_name.unwrap_or_default();
        let channel = self.package.default_channel.unwrap_or_default();
        let described = [
            annotations.description,
            csv.description,
            self.package.description,
        ]
        .map(Option::unwrap_or_default);
        let [annotated, own, of_package] = &described;
        let description = if own.is_empty() { of_package } else { own };
        let summary = if annotated.is_empty() {
            let mut lines = description.lines();
            lines
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default()
        } else {
            annotated.as_str()
        };
        let labels = csv.labels.unwrap_or_default();
        let supported = labels.iter().filter(|(_, value)| *value == "supported");
        let arches = supported.filter_map(|(label, _)| label.strip_prefix(ARCH_LABEL));
        let mut arches: Vec<&str> = arches.collect();
        arches.sort_unstable();
        if arches.is_empty() {
            // A bundle without such labels is for amd64 (operator-framework/api, "Architecture and
            // operating system").
            arches.push("amd64");
        }
        let mut left = WORDS_BYTES;
        let keywords = fitting(csv.keywords.unwrap_or_default(), &mut left);
        let kinds = fitting(kinds, &mut left);
        // The rest of a text that is cut is found as a description is.
        let cut = [&display_name, &provider].into_iter();
        let cut = cut.filter(|text| text.chars().count() > TEXT_CHARS);
        let found: BTreeSet<String> = described
            .iter()
            .chain(cut)
            .flat_map(|text| words(text))
            .collect();
        SearchPackage {
            name: String::new(),
            display_name: shown(&display_name),
            summary: shown(&without_markdown(summary)),
            channel: shown(&channel),
            version: shown(&version),
            provider: shown(&provider),
            capability: shown(annotations.capabilities.as_deref().unwrap_or_default()),
            categories: list(
                annotations
                    .categories
                    .as_deref()
                    .unwrap_or_default()
                    .split(','),
            ),
            arches: list(arches),
            keywords,
            kinds,
            words: fitting(found, &mut left).join(" "),
            icon: self.icon.map_or("", IconKind::extension).to_owned(),
            deprecated: self.is_deprecated,
            support,
        }
    }
}

/// Returns the phases of support of a version, by the documents of its package.
fn support(lifecycles: &[Lifecycle], version: &str) -> Vec<SupportPhase> {
    let [lifecycle] = lifecycles else {
        return Vec::new();
    };
    let phases = lifecycle.of(version).map(|found| &*found.phases);
    let phases = phases.unwrap_or_default().iter().take(PHASES_MAX);
    let phases = phases.map(|phase| SupportPhase {
        name: shown(&phase.name),
        start: shown(&phase.start_date),
        end: shown(&phase.end_date),
    });
    phases.collect()
}

impl HeadTexts {
    fn read(line: &[u8]) -> Self {
        let mut texts = Self::default();
        let Ok(bundle) = serde_json::from_slice::<BundleFields<'_>>(line) else {
            return texts;
        };
        texts.version = bundle.version().unwrap_or_default();
        for property in bundle.properties.iter().flatten() {
            match &*property.kind {
                "olm.gvk" => texts
                    .kinds
                    .extend(property.value().map(|api: KindProperty| api.kind)),
                "olm.csv.metadata" => texts.csv = property.value().unwrap_or_default(),
                "olm.bundle.object" => texts.csv = csv_object(property).unwrap_or(texts.csv),
                _ => {}
            }
        }
        texts
    }
}

/// Returns the texts of an object if it is a ClusterServiceVersion in JSON.
fn csv_object(property: &PropertyFields<'_>) -> Option<CsvTexts> {
    let object: ObjectProperty<'_> = property.value()?;
    let document = STANDARD.decode(object.data.as_bytes()).ok()?;
    let csv: CsvDocument = serde_json::from_slice(&document).ok()?;
    (csv.kind == "ClusterServiceVersion").then_some(CsvTexts {
        annotations: csv.metadata.annotations,
        labels: csv.metadata.labels,
        ..csv.spec
    })
}

/// Returns a foreign text as one short line without control characters. A line break is a space.
fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    text::line(&words.join(" "), TEXT_CHARS)
}

/// Returns a sentence without the signs of Markdown for headings, lists, quotes, emphasis, code and
/// links.
fn without_markdown(text: &str) -> String {
    let words = text.split_whitespace();
    let mut words = words.skip_while(|word| is_markdown_sign(word)).peekable();
    let mut sentence = String::new();
    while let Some(word) = words.next() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        let is_closed_heading = words.peek().is_none() && is_markdown_sign(word);
        if !is_closed_heading {
            sentence += &word.replace(['`'], "").replace("**", "").replace("__", "");
        }
    }
    without_links(sentence.trim_end())
}

/// True for a word that begins a heading, an item of a list, or a quotation.
fn is_markdown_sign(word: &str) -> bool {
    let is_heading = !word.is_empty() && word.chars().all(|c| c == '#');
    is_heading || ["-", "*", "+", ">"].contains(&word)
}

/// Returns a text with each link `[text](url)` and image `![text](url)` as its text.
fn without_links(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(link) = first_link(rest) {
        let before = &rest[..link.start];
        shown += before.strip_suffix('!').unwrap_or(before);
        shown += link.text;
        rest = &rest[link.end..];
    }
    shown + rest
}

/// Link of Markdown in a text.
struct MarkdownLink<'t> {
    text: &'t str,
    start: usize,
    end: usize,
}

fn first_link(text: &str) -> Option<MarkdownLink<'_>> {
    let border = text.find("](")?;
    let start = text[..border].rfind('[')?;
    let url = &text[border + 2..];
    let end = border + 2 + url.find(')')? + 1;
    Some(MarkdownLink {
        text: &text[start + 1..border],
        start,
        end,
    })
}

fn list<'t>(values: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let values = values
        .into_iter()
        .map(str::trim)
        .filter(|value| !value.is_empty());
    let mut seen = HashSet::new();
    let values = values.map(shown).filter(|value| seen.insert(value.clone()));
    values.take(LIST_MAX).collect()
}

/// Returns the different texts that fit into the bytes that are left.
fn fitting(texts: impl IntoIterator<Item = String>, left: &mut usize) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut kept = Vec::new();
    for text in texts {
        if let Some(rest) = left.checked_sub(text.len() + 1)
            && !text.is_empty()
            && seen.insert(text.clone())
        {
            *left = rest;
            kept.push(text);
        }
    }
    kept
}
