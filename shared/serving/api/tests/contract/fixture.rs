//! A published catalog, built without the parser and the renderer: this crate knows neither.

use model::{
    CatalogImage, CatalogName, Catalogs, Current, Document, Facts, Key, Kind, ObjectDigest,
    SearchPackage, SeenPackage, Sha256, Snapshot,
};
use olm::SEARCH;
use store::{Store, StoreExt};
use storekit::conformance::put;
use testkit::{CurrentBuilder, SnapshotBuilder, gzip};

/// A publication as it was stored.
pub(crate) struct Published {
    /// The whole `all.json`.
    pub(crate) all: Vec<u8>,
    pub(crate) current: Current,
    pub(crate) snapshot: Snapshot,
}

/// Properties of a publication.
pub(crate) struct Publication<'a> {
    pub(crate) name: &'a str,
    /// True if `all.json` is stored uncompressed too.
    pub(crate) identity: bool,
    /// True if packages can be found by their names.
    pub(crate) search: bool,
    /// Days on which the bundles were first seen, if they are recorded.
    pub(crate) days: Option<Facts<SeenPackage>>,
}

impl Default for Publication<'_> {
    fn default() -> Self {
        Self {
            name: "demo",
            identity: false,
            search: true,
            days: None,
        }
    }
}

impl<'a> Publication<'a> {
    pub(crate) fn of(name: &'a str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }
}

/// Returns the package of a line, or an empty text.
fn group(line: &str) -> String {
    let meta: serde_json::Value = serde_json::from_str(line).unwrap();
    let field = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
    match field("package") {
        package if package.is_empty() && field("schema") == "olm.package" => field("name"),
        package => package,
    }
}

/// Publishes canonical lines, after what is published of the catalog.
pub(crate) async fn publish(
    store: &dyn Store,
    publication: Publication<'_>,
    lines: &str,
) -> Published {
    let name: CatalogName = publication.name.parse().unwrap();
    let mut builder = SnapshotBuilder::new().image(put_image(store, lines).await);
    let mut texts = Facts::new(1);
    for line in lines.split_inclusive('\n') {
        let package = group(line);
        builder = builder.package(&package, line);
        let found = SearchPackage {
            arches: vec!["amd64".to_owned()],
            ..SearchPackage::default()
        };
        texts.packages.insert(package, found);
    }
    // The lines of no package are not found.
    texts.packages.remove("");
    if publication.identity {
        builder = builder.identity();
    }
    if publication.search {
        builder = builder.facts(SEARCH.name, &texts);
    }
    if let Some(days) = &publication.days {
        builder = builder.facts(SeenPackage::KIND, days);
    }
    let built = builder.build();
    for (key, bytes) in &built.objects {
        put(store, key, bytes.to_vec()).await;
    }
    let key = Key::Current(name.clone());
    let before = store.read_document(&key).await.unwrap();
    let before = before.as_ref().map(|(current, _)| current);
    let builder = CurrentBuilder::new(&built.snapshot).after(before);
    let current = builder
        .source("registry.example/demo:latest", "sha256:0123")
        .build();
    put(store, &key, current.to_bytes()).await;
    put(
        store,
        &Key::Catalogs,
        Catalogs::from_iter([name]).to_bytes(),
    )
    .await;
    Published {
        all: built.all,
        current,
        snapshot: built.snapshot,
    }
}

/// Puts an image whose layer holds the lines. It is no archive, because nothing here reads it.
async fn put_image(store: &dyn Store, lines: &str) -> CatalogImage {
    let bytes = gzip(lines.as_bytes());
    let (layer, diff_id) = (ObjectDigest::of(&bytes), Sha256::of(lines.as_bytes()));
    let documents = oci::Documents::new(layer, diff_id);
    let image = documents.image(layer, diff_id);
    for bytes in documents.into_all().chain([bytes]) {
        put(
            store,
            &ObjectDigest::of(&bytes).with_kind(Kind::Blob).key(),
            bytes,
        )
        .await;
    }
    image
}

/// Three packages, a Meta of no package and one without a schema.
pub(crate) const LINES: &str = r#"{"schema":"olm.note","text":"of no package"}
{"defaultChannel":"stable","name":"alpha","schema":"olm.package"}
{"name":"stable","package":"alpha","schema":"olm.channel"}
{"name":"alpha.v1","package":"alpha","schema":"olm.bundle"}
{"package":"alpha","text":"without a schema"}
{"name":"alpha.v2","package":"alpha","schema":"olm.bundle"}
{"name":"beta","schema":"olm.package"}
{"name":"stable","package":"beta","schema":"olm.channel"}
{"name":"beta.v1","package":"beta","schema":"olm.bundle"}
{"name":"gamma","schema":"olm.package"}
"#;
