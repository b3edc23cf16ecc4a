//! The files of a tree: their paths, contents and order.

use std::collections::BTreeMap;

use api::{CATALOGS_LIST, page_files};
use model::{
    Encoding, Facts, Kind, ObjectRef, SearchPackage, Snapshot, StoredDocument, is_dns_label,
    is_lower_alphanumeric,
};
use reader::{PublishedCatalogs, PublishedState, ReaderError};
use serde::Deserialize;

/// Form of the files of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeForm {
    /// Texts plain and as `.gz`; manifests with an ending for their media type.
    Files,
    /// Texts as `.gz` alone, and the rest as in [`Self::Files`].
    GzipFiles,
    /// Texts and pointers as gzip under their plain names: a bucket has the coding and the media
    /// type beside the bytes.
    Bucket,
}

/// Order of writing. A reader that follows a document finds all that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Objects,
    Blobs,
    Documents,
    Tags,
    Pointers,
    Catalogs,
}

/// File that the tree is to have: the answer of the router to a path.
#[derive(Debug, Clone)]
pub(crate) struct NamedFile {
    /// Path in the tree.
    pub(crate) path: String,
    /// Path of the request, escaped.
    pub(crate) url: String,
    /// Coding that is asked for.
    pub(crate) coding: Encoding,
    pub(crate) phase: Phase,
    /// File of the tree with the same bytes, of an earlier phase; for an object, its own path.
    pub(crate) same: Option<String>,
    /// False for what a state may lack, and for objects of earlier states, which may be collected.
    pub(crate) is_needed: bool,
}

impl NamedFile {
    pub(crate) fn new(path: String, phase: Phase) -> Self {
        Self {
            url: format!("/{path}"),
            path,
            coding: Encoding::Identity,
            phase,
            same: None,
            is_needed: true,
        }
    }
}

/// Channel of a package.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TreeChannel {
    package: String,
    name: String,
}

impl TreeChannel {
    /// Returns true if its name can be that of a file: it holds no separator, and another name
    /// cannot differ from it by case alone.
    fn is_file(&self) -> bool {
        let name = &self.name;
        is_dns_label(&self.package)
            && (1..=200).contains(&name.len())
            && !name.starts_with('.')
            && name
                .chars()
                .all(|c| is_lower_alphanumeric(c) || "-._".contains(c))
    }
}

/// All files of a tree.
pub(crate) struct TreeLayout {
    form: TreeForm,
    files: BTreeMap<String, NamedFile>,
    /// Paths of packages that no file is written for.
    left_out: Vec<String>,
}

impl TreeLayout {
    pub(crate) fn new(form: TreeForm) -> Self {
        let mut layout = Self {
            form,
            files: BTreeMap::new(),
            left_out: Vec::new(),
        };
        let mut page = NamedFile::new("index.html".to_owned(), Phase::Catalogs);
        page.url = "/".to_owned();
        layout.text(page, None);
        for path in page_files() {
            layout.text(NamedFile::new(path.to_owned(), Phase::Documents), None);
        }
        layout.add(NamedFile::new("openapi.json".to_owned(), Phase::Documents));
        layout.add(NamedFile::new("catalogs.json".to_owned(), Phase::Catalogs));
        let mut list = NamedFile::new(CATALOGS_LIST.to_owned(), Phase::Catalogs);
        list.url = "/catalogs".to_owned();
        layout.add(list);
        if form == TreeForm::Bucket {
            // Clients of a registry ask for it first. A web server answers it by its settings.
            layout.add(NamedFile::new("v2/".to_owned(), Phase::Documents));
        }
        layout
    }

    /// Adds the files of a catalog: its objects, those of earlier states that are stored, and its
    /// names. `tags` are those of its image, `channels` those of its packages.
    pub(crate) async fn add_catalog(
        &mut self,
        catalogs: &PublishedCatalogs,
        state: &PublishedState,
        tags: impl Iterator<Item = &str>,
        channels: impl Iterator<Item = TreeChannel>,
    ) -> Result<(), ReaderError> {
        let current = state.current();
        let repository = format!("v2/{}", state.name());
        let snapshot = state.snapshot().await?;
        self.add_state(&current.snapshot, &snapshot, &repository, true);
        for previous in &current.previous {
            match catalogs.snapshot(&previous.snapshot).await {
                Ok(earlier) => self.add_state(&previous.snapshot, &earlier, &repository, false),
                // Collected, or damaged: it is not served either.
                Err(ReaderError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let named =
            |name: &str, phase| NamedFile::new(format!("catalogs/{}/{name}", state.name()), phase);
        let all = named("api/v1/all", Phase::Blobs);
        let mut whole = named("all.json", Phase::Documents);
        whole.same = Some(all.path.clone());
        for file in [all, whole] {
            self.text(file, Some(current.all.gzip.key().to_string()));
        }
        let mut search = named("search.json", Phase::Documents);
        search.is_needed = false;
        self.text(search, None);
        for name in ["days.json", "changes"] {
            let mut file = named(name, Phase::Documents);
            file.is_needed = false;
            self.add(file);
        }
        let icons = search_texts(catalogs, &snapshot).await?;
        for package in &snapshot.packages {
            let file = named(&format!("packages/{}", package.name), Phase::Documents);
            // Another name can be a folder where a package has its file, or differ from one by case
            // alone. A host that chooses media types by endings would serve `x.html` as a page, and
            // `x.gz` as the gzip bytes of `x`.
            if is_dns_label(&package.name) {
                self.text(file, None);
                let versions = format!("versions/{}.json", package.name);
                self.add(named(&versions, Phase::Documents));
                let texts = icons.as_ref().and_then(|texts| texts.part(&package.name));
                if let Some(texts) = texts.filter(|texts| !texts.icon.is_empty()) {
                    let icon = format!("icons/{}.{}", package.name, texts.icon);
                    self.add(named(&icon, Phase::Documents));
                }
            } else {
                self.left_out.push(file.path);
            }
        }
        for channel in channels.filter(TreeChannel::is_file) {
            let file = format!("versions/{}/{}.json", channel.package, channel.name);
            self.add(named(&file, Phase::Documents));
        }
        self.add(named("content-hash", Phase::Documents));
        self.add(named("status.json", Phase::Documents));
        let pointer = named("current.json", Phase::Pointers);
        match self.form {
            // Clients ask a bucket for it most often, and its traffic costs money.
            TreeForm::Bucket => self.text(pointer, None),
            // One file, so that it changes at once.
            TreeForm::Files | TreeForm::GzipFiles => self.add(pointer),
        }
        let mut list = NamedFile::new(format!("{repository}/tags/list"), Phase::Tags);
        // A state may have no image.
        list.is_needed = false;
        self.add(list);
        for tag in tags {
            self.add(self.manifest(&repository, tag, ".index", Phase::Tags));
        }
        Ok(())
    }

    /// Returns the files in the order of writing, and the paths of the packages that are left out.
    pub(crate) fn finish(self) -> (Vec<NamedFile>, Vec<String>) {
        let mut files: Vec<NamedFile> = self.files.into_values().collect();
        files.sort_by_key(|file| file.phase);
        (files, self.left_out)
    }

    /// Adds the objects of a state, and the parts of its image by their names in the repository.
    fn add_state(
        &mut self,
        stored: &ObjectRef,
        snapshot: &Snapshot,
        repository: &str,
        is_needed: bool,
    ) {
        let mut parts = Vec::new();
        let objects = snapshot.objects().into_iter().map(|entry| entry.object);
        for key in objects
            .chain([*stored])
            .map(|object| object.key().to_string())
        {
            let mut file = NamedFile::new(key, Phase::Objects);
            file.same = Some(file.path.clone());
            parts.push(file);
        }
        if let Some(image) = &snapshot.image {
            for blob in image.configs.iter().chain([&image.layer]) {
                let path = format!("{repository}/blobs/{}", oci::digest(&blob.sha256));
                let mut file = NamedFile::new(path, Phase::Blobs);
                file.same = Some(blob.with_kind(Kind::Blob).key().to_string());
                parts.push(file);
            }
            let manifests = image.manifests.iter().map(|blob| (blob, ".manifest"));
            for (blob, ending) in manifests.chain([(&image.index, ".index")]) {
                let digest = oci::digest(&blob.sha256);
                parts.push(self.manifest(repository, &digest, ending, Phase::Documents));
            }
        }
        for mut file in parts {
            file.is_needed = is_needed;
            // States share parts.
            self.files
                .entry(file.path.clone())
                .or_insert(file)
                .is_needed |= is_needed;
        }
    }

    /// Returns a manifest, whose ending tells a server of files its media type.
    fn manifest(&self, repository: &str, reference: &str, ending: &str, phase: Phase) -> NamedFile {
        let mut file = NamedFile::new(format!("{repository}/manifests/{reference}"), phase);
        if self.form != TreeForm::Bucket {
            file.path.push_str(ending);
        }
        file
    }

    /// Adds a text in the codings of the form. `gzip` is an object with the same bytes.
    fn text(&mut self, file: NamedFile, gzip: Option<String>) {
        let mut coded = file.clone();
        coded.coding = Encoding::Gzip;
        coded.same = gzip;
        if self.form != TreeForm::Bucket {
            coded.path.push_str(".gz");
        }
        if self.form == TreeForm::Files {
            self.add(file);
        }
        self.add(coded);
    }

    fn add(&mut self, file: NamedFile) {
        self.files.insert(file.path.clone(), file);
    }
}

/// Reads the texts for search, which tell the icons; none of a state without them.
async fn search_texts(
    catalogs: &PublishedCatalogs,
    snapshot: &Snapshot,
) -> Result<Option<Facts<SearchPackage>>, ReaderError> {
    let Some(object) = snapshot.facts("search") else {
        return Ok(None);
    };
    let bytes = catalogs.object(&object).await?;
    let facts = Facts::from_stored(&bytes).map_err(ReaderError::document(&object.key()))?;
    Ok(Some(facts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_is_a_file_if_its_name_is_plain() {
        let is_file = |package: &str, name: &str| {
            let [package, name] = [package, name].map(str::to_owned);
            TreeChannel { package, name }.is_file()
        };
        for name in ["stable", "stable-3.17", "v1_2", &"a".repeat(200)] {
            assert!(is_file("etcd", name), "{name}");
        }
        for name in [
            "",
            ".a",
            "Stable",
            "a/b",
            "..",
            "a%2fb",
            "ä",
            &"a".repeat(201),
        ] {
            assert!(!is_file("etcd", name), "{name}");
        }
        assert!(!is_file("a/b", "stable"));
    }
}
