//! Search: texts of packages, and the packages that queries find.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use model::{Facts, IndexedMeta, SearchPackage};
use olm::{
    RecordedShard, Recorder, SEARCH, SearchFacet, SearchField, SearchFilter, SearchIndex,
    SearchQuery, TooManyTerms,
};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use work::Budget;

/// Returns the canonical lines of documents, and their positions.
fn lines(metas: &[Value]) -> (Vec<u8>, Vec<IndexedMeta>) {
    let (mut lines, mut index) = (Vec::new(), Vec::new());
    for meta in metas {
        let line = format!("{meta}\n");
        let field = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
        index.push(IndexedMeta {
            schema: field("schema"),
            package: field("package"),
            name: field("name"),
            offset: lines.len() as u64,
            length: line.len() as u64,
        });
        lines.extend_from_slice(line.as_bytes());
    }
    (lines, index)
}

fn recorder<'s>(name: &'s str, metas: &'s [IndexedMeta]) -> Box<dyn Recorder + 's> {
    static BUDGET: LazyLock<Budget> = LazyLock::new(Budget::default);
    (SEARCH.recorder)(RecordedShard {
        name,
        metas,
        is_yaml: |_| false,
        budget: &BUDGET,
    })
}

/// Reads a package block by block, a second time if its head is needed. Returns the texts and the
/// number of passes.
fn read(name: &str, metas: &[Value], block: usize) -> (SearchPackage, usize) {
    let (lines, index) = lines(metas);
    let mut recorder = recorder(name, &index);
    for passes in 1..=2 {
        lines.chunks(block).for_each(|part| recorder.push(part));
        if let Some(part) = recorder.finish() {
            return (serde_json::from_str(part.get()).unwrap(), passes);
        }
    }
    panic!("a third pass is asked for")
}

fn csv() -> Value {
    json!({
        "annotations": {"categories": "Streaming & Messaging, Database", "capabilities": "Deep Insights", "description": "Runs Kafka."},
        "labels": {"operatorframework.io/arch.s390x": "supported", "operatorframework.io/arch.arm64": "unsupported"},
        "displayName": "Strimzi",
        "description": "Apache Kafka® on Kubernetes\nÜberall",
        "keywords": ["streaming", null],
        "provider": {"name": "Strimzi"},
    })
}

fn package(properties: &Value) -> Vec<Value> {
    vec![
        json!({"schema": "olm.package", "name": "kafka-operator", "defaultChannel": "stable", "description": "fallback"}),
        json!({"schema": "olm.channel", "package": "kafka-operator", "name": "stable", "entries": [
            {"name": "k.v1"}, {"name": "k.v2", "replaces": "k.v1", "skips": ["k.v0"]}, {"name": "k.v0"}]}),
        json!({"schema": "olm.bundle", "package": "kafka-operator", "name": "k.v1", "properties": [
            {"type": "olm.package", "value": {"packageName": "kafka-operator", "version": "1.0.0"}}]}),
        json!({"schema": "olm.bundle", "package": "kafka-operator", "name": "k.v2", "properties": properties}),
    ]
}

#[test]
fn recorder_takes_the_phases_of_the_version_if_one_document_tells_them() {
    let life = |name: &str, end: &str| {
        json!({"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "kafka-operator", "versions": [
            {"name": name, "phases": [{"name": "Full\nsupport", "startDate": "2026-01-01", "endDate": end}]}]})
    };
    let support = |documents: &[Value]| {
        let metas = [package(&properties(&csv())), documents.to_vec()].concat();
        let backwards: Vec<Value> = metas.iter().rev().cloned().collect();
        let [(found, _), (same, _)] =
            [metas, backwards].map(|metas| read("kafka-operator", &metas, 7));
        assert_eq!(found, same);
        let phases = found.support.into_iter();
        let phases = phases.map(|phase| format!("{} {} {}", phase.name, phase.start, phase.end));
        phases.collect::<Vec<_>>().join(", ")
    };
    let expected = "Full support 2026-01-01 2026-12-31";
    assert_eq!(support(&[life("2.0", "2026-12-31")]), expected);
    assert_eq!(support(&[life("2.1", "2026-12-31")]), "");
    assert_eq!(
        support(&[life("2.0", "2026-12-31"), life("2.0", "2027-12-31")]),
        ""
    );
    assert_eq!(
        support(&[
            json!({"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "kafka-operator", "versions": 1})
        ]),
        ""
    );
    let many = json!({"schema": "io.openshift.operators.lifecycles.v1alpha1", "package": "kafka-operator", "versions": [
        {"name": "2.0", "phases": vec![json!({"name": "a", "startDate": "b", "endDate": "c"}); 21]}]});
    assert_eq!(support(&[many]).split(", ").count(), 20);
}

fn properties(csv: &Value) -> Value {
    json!([
        {"type": "olm.package", "value": {"packageName": "kafka-operator", "version": "2.0.0"}},
        {"type": "olm.gvk", "value": {"group": "kafka.strimzi.io", "version": "v1", "kind": "KafkaTopic"}},
        {"type": "olm.csv.metadata", "value": csv},
    ])
}

#[test]
fn recorder_takes_texts_of_the_head_of_the_default_channel() {
    let mut csv = csv();
    csv["keywords"] = json!(["streaming"]);
    let expected = SearchPackage {
        name: String::new(),
        display_name: "Strimzi".to_owned(),
        summary: "Runs Kafka.".to_owned(),
        channel: "stable".to_owned(),
        version: "2.0.0".to_owned(),
        provider: "Strimzi".to_owned(),
        capability: "Deep Insights".to_owned(),
        categories: vec!["Streaming & Messaging".to_owned(), "Database".to_owned()],
        arches: vec!["s390x".to_owned()],
        keywords: vec!["streaming".to_owned()],
        kinds: vec!["KafkaTopic".to_owned()],
        words: "apache fallback kafka kubernetes on runs uberall".to_owned(),
        icon: String::new(),
        deprecated: false,
        support: Vec::new(),
    };
    let metas = package(&properties(&csv));
    for block in [1, 7, 1 << 20] {
        let found = read("kafka-operator", &metas, block);
        assert_eq!(found, (expected.clone(), 1), "blocks of {block}");
    }
    let backwards: Vec<Value> = metas.iter().rev().cloned().collect();
    assert_eq!(read("kafka-operator", &backwards, 7), (expected.clone(), 2));
    let document = json!({"kind": "ClusterServiceVersion",
        "metadata": {"annotations": csv["annotations"], "labels": csv["labels"]}, "spec": csv});
    let object = STANDARD.encode(document.to_string());
    let mut properties = properties(&csv);
    properties[2] = json!({"type": "olm.bundle.object", "value": {"data": object}});
    assert_eq!(
        read("kafka-operator", &package(&properties), 1 << 20),
        (expected, 1)
    );
}

#[rstest]
#[case::no_csv(json!([]), "fallback")]
#[case::properties_of_another_type(json!({"a": 1}), "fallback")]
#[case::csv_of_another_type(json!([{"type": "olm.csv.metadata", "value": [1]}]), "fallback")]
#[case::object_that_is_not_base64(json!([{"type": "olm.bundle.object", "value": {"data": "%"}}]), "fallback")]
#[case::null_texts(json!([{"type": "olm.csv.metadata", "value": {"displayName": null, "description": "d", "labels": null}}]), "d")]
fn package_with_odd_head_is_found_by_its_name(#[case] properties: Value, #[case] summary: &str) {
    let (found, _) = read("kafka-operator", &package(&properties), 100);
    assert_eq!(found.summary, summary);
    assert_eq!(found.arches, ["amd64"]);
}

#[test]
fn texts_of_strangers_are_cut_and_cleaned() {
    let csv = json!({"displayName": format!("a\u{1b}[31m{}", "b".repeat(1000)), "keywords": vec!["k"; 500]});
    let (found, _) = read("kafka-operator", &package(&properties(&csv)), 100);
    assert!(!found.display_name.contains('\u{1b}') && found.display_name.chars().count() <= 210);
    assert_eq!(found.keywords, ["k"]);
}

#[rstest]
#[case::line_break(
    "The most advanced platform.\nFully Open\r\n  Source.",
    "The most advanced platform. Fully Open Source."
)]
#[case::heading("## DataTrucker.IO", "DataTrucker.IO")]
#[case::closed_heading("# Heading #", "Heading")]
#[case::emphasis(
    "**Overview** of `kubectl` and __more__",
    "Overview of kubectl and more"
)]
#[case::link(
    "See [the docs](https://h.example/a) or ![logo](b.png)!",
    "See the docs or logo!"
)]
#[case::list("- an item", "an item")]
#[case::no_markdown("C# and a_b * 2 [x] (y) ](z", "C# and a_b * 2 [x] (y) ](z")]
fn summary_is_one_line_without_markdown(#[case] description: &str, #[case] summary: &str) {
    let csv = json!({"annotations": {"description": description}});
    let (found, _) = read("kafka-operator", &package(&properties(&csv)), 100);
    assert_eq!(found.summary, summary);
}

/// Returns the index of the one package that these properties make.
fn index_of(properties: &Value) -> SearchIndex {
    let (found, _) = read("kafka-operator", &package(properties), 1 << 20);
    let mut facts = Facts::new(1);
    facts.packages.insert("kafka-operator".to_owned(), found);
    SearchIndex::new(facts)
}

fn finds(index: &SearchIndex, text: &str) -> bool {
    let text = text.to_owned();
    let query = SearchQuery {
        text,
        limit: 1,
        ..SearchQuery::default()
    };
    index.find(&query).unwrap().total == 1
}

#[test]
fn every_kind_is_found_by_itself_and_by_its_parts() {
    let long = format!("Certificate{}Request", "x".repeat(60));
    let kinds = (0..300)
        .map(|at| format!("Kind{at}zz"))
        .chain([long.clone()]);
    let kinds = kinds.map(
        |kind| json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": kind}}),
    );
    let index = index_of(&kinds.collect::<Vec<_>>().into());
    for text in ["Kind0zz", "kind299zz", &long, "request"] {
        assert!(finds(&index, text), "{text}");
    }
    assert!(!finds(&index, "kind9999zz"));
}

#[test]
fn words_of_a_package_are_kept_up_to_their_bytes() {
    let words = |last: usize| -> Vec<String> {
        let filled = (0..64).map(|at| format!("{at:02}{}", "a".repeat(1021)));
        filled
            .take(63)
            .chain([format!("z{}", "b".repeat(last - 1))])
            .collect()
    };
    for (last, is_kept) in [(1023, true), (1024, false)] {
        let keywords = words(last);
        let index =
            index_of(&json!([{"type": "olm.csv.metadata", "value": {"keywords": keywords}}]));
        assert!(finds(&index, &keywords[62]), "{last}");
        assert_eq!(finds(&index, &keywords[63]), is_kept, "{last}");
    }
}

/// The name of the default channel is compared with the names of all channels, and the head with
/// all bundles.
#[test]
fn recorder_takes_no_longer_for_a_long_name_of_the_default_channel() {
    let took = |length: usize| {
        let long = "c".repeat(length);
        let mut metas = vec![
            json!({"schema": "olm.package", "name": "p", "defaultChannel": long}),
            json!({"schema": "olm.channel", "package": "p", "name": "other", "entries": [{"name": "p.v1"}]}),
        ];
        metas.extend(
            (0..20_000).map(
                |at| json!({"schema": "olm.bundle", "package": "p", "name": format!("b{at}")}),
            ),
        );
        let (lines, index) = lines(&metas);
        let mut recorder = recorder("p", &index);
        let began = Instant::now();
        recorder.push(&lines);
        recorder.finish();
        began.elapsed()
    };
    assert!(took(1_000_000) < took(1) * 20 + Duration::from_secs(1));
}

#[test]
fn query_has_at_most_ten_words() {
    let find = |words: usize| {
        let query = SearchQuery {
            text: vec!["kafka"; words].join(" "),
            ..SearchQuery::default()
        };
        index().find(&query).map(|found| found.total)
    };
    assert_eq!((find(10), find(11)), (Ok(3), Err(TooManyTerms)));
}

/// Texts with words in camel case, accents, ligatures and signs, some of them longer than what is
/// shown.
fn texts() -> impl Strategy<Value = String> {
    "([A-Za-zäÉß½™ﬁ\u{301}_./ -]{0,30}|ﷺ|([A-Z][a-z]{1,9}){1,9}|([a-z]{1,9} ){40})"
}

proptest! {
    /// Looks for each word of each text by itself. Here a word ends where its letters and digits
    /// do.
    #[test]
    fn find_finds_what_a_naive_search_over_the_lines_finds(texts in proptest::collection::vec(texts(), 6), kinds in proptest::collection::vec(texts(), 0..3)) {
        let mut properties = vec![json!({"type": "olm.csv.metadata", "value": {
            "displayName": texts[0], "description": texts[1], "keywords": [texts[2], texts[3]], "provider": {"name": texts[4]},
            "annotations": {"description": texts[5]}}})];
        properties.extend(kinds.iter().map(|kind| json!({"type": "olm.gvk", "value": {"group": "g", "version": "v1", "kind": kind}})));
        let index = index_of(&properties.into());
        for text in texts.iter().chain(&kinds).map(String::as_str).chain(["kafka-operator", "fallback"]) {
            for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '\u{301}') {
                prop_assert!(finds(&index, word), "{word:?} of {text:?}");
            }
        }
        prop_assert!(!finds(&index, "123"));
    }

    #[test]
    fn recorder_never_panics(lines in proptest::collection::vec("(\\{\"a\":1\\}|\\PC{0,40})", 0..4), schema in "olm\\.(package|channel|bundle)") {
        let mut index = Vec::new();
        let mut text = String::new();
        for line in lines {
            let length = line.len() as u64 + 1;
            index.push(IndexedMeta {schema: schema.clone(), package: "p".into(), name: "p".into(), offset: text.len() as u64, length});
            text += &line;
            text.push('\n');
        }
        let mut recorder = recorder("p", &index);
        recorder.push(text.as_bytes());
        recorder.push(b"more than the index has");
        recorder.finish();
    }

    #[test]
    fn find_never_panics(text in "\\PC{0,60}", offset: usize, limit: usize) {
        index().find(&SearchQuery { text, offset, limit, ..SearchQuery::default() }).ok();
    }
}

/// Packages with their name, display name, provider, category, keywords, kinds and words.
const PACKAGES: &str = "\
cert-manager|cert-manager|Jetstack|Security|certificates tls|Certificate Issuer|issues certificates for kafka and others
strimzi-kafka-operator|Strimzi|Strimzi|Streaming & Messaging|kafka messaging|Kafka KafkaTopic|apache kafka
grafana-operator|Grafana Operator|Grafana Labs|Monitoring|dashboards|Grafana GrafanaDashboard|dashboards for metrics
kafkaesque|Kafkaesque|Other|Monitoring|novel||novels
argocd-operator|Argo CD|Argo CD Community|Integration & Delivery|gitops|ArgoCD Application|gitops";

fn index() -> SearchIndex {
    let mut facts = Facts::new(1);
    for package in PACKAGES.lines() {
        let fields: Vec<&str> = package.split('|').collect();
        let [name, display, provider, category, keywords, kinds, words] = fields[..] else {
            panic!("{package}");
        };
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let package = SearchPackage {
            display_name: display.into(),
            provider: provider.into(),
            categories: vec![category.into()],
            arches: vec!["amd64".into()],
            keywords: list(keywords),
            kinds: list(kinds),
            words: words.into(),
            ..SearchPackage::default()
        };
        facts.packages.insert(name.to_owned(), package);
    }
    SearchIndex::new(facts)
}

fn found(text: &str, filter: SearchFilter) -> Vec<String> {
    let query = SearchQuery {
        text: text.into(),
        filter,
        limit: 20,
        offset: 0,
    };
    let results = index().find(&query).unwrap().results.into_iter();
    results.map(|hit| hit.package).collect()
}

#[rstest]
#[case::name("kafka", &["strimzi-kafka-operator", "kafkaesque", "cert-manager"])]
#[case::whole_name("cert manager", &["cert-manager"])]
#[case::whole_display_name("argocd", &["argocd-operator"])]
#[case::display_name_in_words("argo cd", &["argocd-operator"])]
#[case::prefix("grafa", &["grafana-operator"])]
#[case::kind_in_camel_case("dashboard", &["grafana-operator"])]
#[case::typo("grafnaa", &["grafana-operator"])]
#[case::accents_and_case("GRÁFANA", &["grafana-operator"])]
#[case::all_words("kafka messaging", &["strimzi-kafka-operator"])]
#[case::short_word_has_no_typo("tsl", &[])]
#[case::nothing("kafka grafana", &[])]
#[case::no_words("!", &["argocd-operator", "cert-manager", "grafana-operator", "kafkaesque", "strimzi-kafka-operator"])]
fn query_finds_packages_the_best_first(#[case] text: &str, #[case] expected: &[&str]) {
    let mut found = found(text, SearchFilter::default());
    if text == "!" {
        found.sort();
    }
    assert_eq!(found, expected);
}

#[test]
fn answer_has_total_page_facets_and_field() {
    let query = SearchQuery {
        text: "kafka".into(),
        limit: 1,
        offset: 1,
        ..SearchQuery::default()
    };
    let found = index().find(&query).unwrap();
    assert_eq!((found.total, found.results.len()), (3, 1));
    assert_eq!(found.results[0].matched, Some(SearchField::Name));
    let categories = found.facets[&SearchFacet::Category]
        .iter()
        .map(|facet| format!("{} {}", facet.value, facet.count));
    assert!(categories.eq(["Monitoring 1", "Security 1", "Streaming & Messaging 1"]));
}

#[test]
fn filter_compares_whole_values_without_case() {
    let filter = |category: &str| SearchFilter::from([(SearchFacet::Category, category.into())]);
    assert_eq!(found("kafka", filter("MONITORING")), ["kafkaesque"]);
    assert_eq!(found("kafka", filter("Monitor")), [""; 0]);
    let other = SearchFilter::from([
        (SearchFacet::Provider, "grafana labs".into()),
        (SearchFacet::Arch, "amd64".into()),
        (SearchFacet::Package, "Grafana-Operator".into()),
    ]);
    assert_eq!(found("", other), ["grafana-operator"]);
    let arm = SearchFilter::from([(SearchFacet::Arch, "arm64".into())]);
    assert!(found("", arm).is_empty());
}
