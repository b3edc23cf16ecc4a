//! What is published decodes: with content that is chosen against it, and with a fault of the
//! program.

use std::fs;
use std::io::Read;

use model::{
    Current, Document, Encoding, Key, Kind, ObjectDigest, Snapshot, StoredDocument, decode_zstd,
};
use testkit::BorderLines;

use crate::support::binary::Ran;
use crate::support::catalogs;
use crate::support::work::Work;

/// Bytes that end a segment of `all.json.gz`.
const BORDER: [u8; 4] = [0, 0, 0xff, 0xff];

impl Work {
    fn object(&self, store: &str, key: &Key) -> Vec<u8> {
        fs::read(self.path(&format!("{store}/{key}"))).unwrap()
    }

    fn current(&self, store: &str, name: &str) -> Current {
        let pointer = self.path(&format!("{store}/catalogs/{name}/current.json"));
        Current::from_bytes(&fs::read(pointer).unwrap()).unwrap()
    }

    fn snapshot(&self, store: &str, name: &str) -> Snapshot {
        let key = self.current(store, name).snapshot.key();
        Snapshot::from_stored(&self.object(store, &key)).unwrap()
    }

    /// Writes an object under the hash of its bytes.
    fn write_object(&self, store: &str, kind: Kind, bytes: &[u8]) -> ObjectDigest {
        let digest = ObjectDigest::of(bytes);
        let key = digest.with_kind(kind).key();
        self.write(&format!("{store}/{key}"), bytes);
        digest
    }

    /// Changes a bit in the `all.json.gz` of a catalog, as if it had been published so.
    pub(crate) fn publish_broken_gzip(&self, store: &str, name: &str) {
        let mut current = self.current(store, name);
        let mut snapshot = self.snapshot(store, name);
        let mut gzip = self.object(store, &current.all.gzip.key());
        let middle = gzip.len() / 2;
        gzip[middle] ^= 0x10;
        let kind = Kind::All(Encoding::Gzip);
        snapshot.all.gzip = self.write_object(store, kind, &gzip);
        let stored = snapshot.to_stored().unwrap();
        let stored = self.write_object(store, Kind::Snapshot, &stored);
        current.serial += 1;
        current.all.gzip = snapshot.all.gzip.with_kind(kind);
        current.snapshot = stored.with_kind(Kind::Snapshot);
        let pointer = format!("{store}/catalogs/{name}/current.json");
        self.write(&pointer, current.to_bytes());
    }

    /// Decodes each object of the published state, and compares it with the lines of the source.
    /// Returns `all.json.gz`.
    fn assert_decodes(&self, store: &str) -> Vec<u8> {
        let lines = self.run("render cat").exits(0).stdout.into_bytes();
        let snapshot = self.snapshot(store, "c");
        let all = |encoding| {
            let object = snapshot.all.get(encoding).unwrap();
            self.object(store, &object.with_kind(Kind::All(encoding)).key())
        };
        let gzip = all(Encoding::Gzip);
        assert!(gunzip(&gzip) == lines, "{store}");
        let zstd = all(Encoding::Zstd);
        let decoded = decode_zstd(&zstd, lines.len() as u64).unwrap();
        assert!(decoded == lines, "{store}");
        let layer = snapshot.image.unwrap().layer.with_kind(Kind::Blob);
        let tar = gunzip(&self.object(store, &layer.key()));
        let mut in_layer = Vec::new();
        for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
            entry.unwrap().read_to_end(&mut in_layer).unwrap();
        }
        assert!(in_layer == lines, "{store}");
        gzip
    }

    fn write_package(&self, name: &str, bundles: usize) {
        let package = vec![catalogs::package(name, bundles)];
        self.write_all("cat", &package);
    }
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    decoder.read_to_end(&mut decoded).unwrap();
    decoded
}

/// The bytes of one package look like the end of a segment before the segment ends. Other packages
/// change, come and go around it.
#[test]
fn package_chosen_against_the_borders_of_segments_breaks_no_object_of_any_state() {
    let work = Work::new();
    let lines = BorderLines::new(34).lines("evil").unwrap();
    work.write("cat/evil/catalog.json", lines);
    work.write_package("alpha", 1);
    work.write_package("omega", 1);
    let poll = "poll --store store --catalog c=dir:cat";
    let copy = "sync store copy --json";
    work.run(poll).exits(0);
    work.run(copy).exits(0);
    let gzip = work.assert_decodes("store");
    let borders = gzip.windows(BORDER.len()).filter(|bytes| *bytes == BORDER);
    assert!(
        borders.count() > work.snapshot("store", "c").packages.len(),
        "the lines are not what they were chosen for: libdeflate has changed"
    );
    let changes: [&dyn Fn(); 5] = [
        &|| work.write_package("alpha", 2),
        &|| work.write_package("omega", 2),
        &|| work.write_package("evil-twin", 1),
        &|| fs::remove_dir_all(work.path("cat/omega")).unwrap(),
        &|| work.write_package("alpha", 3),
    ];
    for change in changes {
        change();
        work.run(poll).exits(0);
        work.run(copy).exits(0);
        work.assert_decodes("store");
        work.assert_decodes("copy");
        work.run("verify --store store").exits(0);
        work.run("verify --store copy").exits(0);
    }
}

/// A fault of the program, of a library or of the machine.
#[test]
fn object_that_is_made_and_does_not_decode_is_not_published() {
    let work = Work::new();
    work.write_package("alpha", 1);
    let poll = "poll --store store --catalog c=dir:cat";
    work.run(poll).exits(0);
    let before = work.read("store/catalogs/c/current.json");
    work.write_package("alpha", 2);
    for object in ["all.json.gz", "all.json.zst"] {
        let damaged = Ran::of(work.command(poll).env("CATALOG_MIRROR_TEST_DAMAGE", object));
        let text = format!("{object} was made, but does not decode to the lines of the catalog");
        damaged.exits(1).complains(&text);
        assert_eq!(work.read("store/catalogs/c/current.json"), before);
        let status = work.read("store/catalogs/c/status.json");
        assert!(status.contains(&text), "{status}");
    }
    work.run(poll).exits(0);
    work.assert_decodes("store");
}

/// An older version of this program published it, or another one that made the copy.
#[test]
fn state_that_was_published_broken_is_found_not_copied_and_healed() {
    let work = Work::new();
    work.write_package("alpha", 1);
    work.write_package("omega", 1);
    let poll = "poll --store store --catalog c=dir:cat";
    work.run(poll).exits(0);
    work.run("sync store copy").exits(0);
    let before = work.read("copy/catalogs/c/current.json");
    work.publish_broken_gzip("store", "c");
    let broken = work.current("store", "c").all.gzip.key().to_string();
    let problem = "does not decode to the content that is recorded for it";
    let found = work.run("verify --store store").exits(1);
    assert!(found.stdout.contains(&format!("{broken} {problem}")));
    for copy in ["copy", "another"] {
        let refused = work.run(&format!("sync store {copy}")).exits(1);
        refused.complains(&format!("{broken} of the origin is damaged: {problem}"));
        assert!(!work.exists(&format!("{copy}/{broken}")));
    }
    assert_eq!(work.read("copy/catalogs/c/current.json"), before);
    work.run("export --store store --to a.tar --whole").exits(0);
    let refused = work.run("import --store third a.tar").exits(1);
    refused.complains(problem);
    // The next change takes no segment of it.
    work.write_package("omega", 2);
    work.run(poll).exits(0);
    work.assert_decodes("store");
    work.run("sync store copy").exits(0);
    work.assert_decodes("copy");
}

/// The object was damaged after it was published, or its Snapshot is wrong about its segments.
#[test]
fn change_after_a_damaged_gzip_publishes_what_decodes() {
    let work = Work::new();
    work.write_package("alpha", 1);
    work.write_package("omega", 1);
    let poll = "poll --store store --catalog c=dir:cat";
    work.run(poll).exits(0);
    let gzip = work.current("store", "c").all.gzip.key();
    let mut bytes = work.object("store", &gzip);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    work.write(&format!("store/{gzip}"), bytes);
    work.write_package("omega", 2);
    let polled = work.run(poll).exits(0);
    polled.complains("the published state is damaged: it is written again from the source");
    work.assert_decodes("store");
}
