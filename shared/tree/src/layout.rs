//! The files of a tree: their paths, contents and order.

use std::collections::BTreeMap;

use http_api::page_files;
use model::{Encoding, Key, Kind, ObjectRef, Snapshot};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reader::{PublishedCatalogs, PublishedState, ReaderError};

use crate::TreeForm;

/// Largest name of a file, in bytes: that of Linux, less the ending of a coding.
const NAME_MAX: usize = 255 - ".gz".len();

/// Order of writing. A reader that follows a document finds all that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Objects,
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
    /// Object of the store with the same bytes.
    pub(crate) object: Option<Key>,
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
            object: None,
            is_needed: true,
        }
    }
}

/// All files of a tree.
pub(crate) struct TreeLayout {
    form: TreeForm,
    files: BTreeMap<String, NamedFile>,
    /// Names that no file can have.
    left_out: Vec<String>,
}

impl TreeLayout {
    pub(crate) fn new(form: TreeForm) -> Self {
        let (files, left_out) = (BTreeMap::new(), Vec::new());
        let mut layout = Self { form, files, left_out };
        let mut page = NamedFile::new("index.html".to_owned(), Phase::Catalogs);
        page.url = "/".to_owned();
        layout.text(&page, None);
        for path in page_files() {
            layout.text(&NamedFile::new(path.to_owned(), Phase::Documents), None);
        }
        layout.add(NamedFile::new("openapi.json".to_owned(), Phase::Documents));
        layout.add(NamedFile::new("catalogs.json".to_owned(), Phase::Catalogs));
        layout
    }

    /// Adds the files of a catalog: its objects, those of earlier states that are stored, and its names. `tags` are those of its image.
    pub(crate) async fn add_catalog(
        &mut self,
        catalogs: &PublishedCatalogs,
        state: &PublishedState,
        tags: &[String],
    ) -> Result<(), ReaderError> {
        let (current, repository) = (state.current(), format!("v2/{}", state.name()));
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
        let named = |name: &str, phase| NamedFile::new(format!("catalogs/{}/{name}", state.name()), phase);
        for name in ["api/v1/all", "all.json"] {
            self.text(&named(name, Phase::Documents), Some(&current.all.gzip.key()));
        }
        let mut search = named("search.json", Phase::Documents);
        search.is_needed = false;
        self.text(&search, None);
        for package in &snapshot.packages {
            let mut file = named(&format!("packages/{}", package.name), Phase::Documents);
            let escaped = utf8_percent_encode(&package.name, NON_ALPHANUMERIC);
            file.url = named(&format!("packages/{escaped}"), Phase::Documents).url;
            self.text(&file, None);
        }
        for (name, phase) in [
            ("content-hash", Phase::Documents),
            ("status.json", Phase::Documents),
            ("current.json", Phase::Pointers),
        ] {
            self.add(named(name, phase));
        }
        if !tags.is_empty() {
            self.add(NamedFile::new(format!("{repository}/tags/list"), Phase::Tags));
        }
        for tag in tags {
            self.add_manifest(&repository, tag, ".index", Phase::Tags, true);
        }
        Ok(())
    }

    /// Returns the files in the order of writing, and the names that no file can have.
    pub(crate) fn finish(self) -> (Vec<NamedFile>, Vec<String>) {
        let is_folder = |path: &str| {
            let inside = format!("{path}/");
            let next = self.files.range(inside.clone()..).next();
            next.is_some_and(|(next, _)| next.starts_with(&inside))
        };
        let (folders, mut files): (Vec<_>, Vec<_>) =
            self.files.values().cloned().partition(|file| is_folder(&file.path));
        files.sort_by_key(|file| file.phase);
        let folders = folders.into_iter().map(|file| file.path);
        (files, self.left_out.iter().cloned().chain(folders).collect())
    }

    /// Adds the objects of a state, and the parts of its image by their names in the repository.
    fn add_state(&mut self, stored: &ObjectRef, snapshot: &Snapshot, repository: &str, is_needed: bool) {
        let objects = snapshot.objects().into_iter().map(|entry| entry.object);
        for key in objects.chain([*stored]).map(|object| object.key()) {
            let mut file = NamedFile::new(key.to_string(), Phase::Objects);
            (file.object, file.is_needed) = (Some(key), is_needed);
            self.add_part(file);
        }
        let Some(image) = &snapshot.image else { return };
        let indexes = std::iter::once((&image.index, ".index"));
        for (blob, ending) in indexes.chain(image.manifests.iter().map(|blob| (blob, ".manifest"))) {
            self.add_manifest(
                repository,
                &oci::digest(&blob.sha256),
                ending,
                Phase::Documents,
                is_needed,
            );
        }
        for blob in image.configs.iter().chain([&image.layer]) {
            let path = format!("{repository}/blobs/{}", oci::digest(&blob.sha256));
            let mut file = NamedFile::new(path, Phase::Objects);
            (file.object, file.is_needed) = (Some(blob.with_kind(Kind::Blob).key()), is_needed);
            self.add_part(file);
        }
    }

    /// Adds a manifest, whose ending tells a server of files its media type.
    fn add_manifest(&mut self, repository: &str, reference: &str, ending: &str, phase: Phase, is_needed: bool) {
        let mut file = NamedFile::new(format!("{repository}/manifests/{reference}"), phase);
        if self.form != TreeForm::Bucket {
            file.path.push_str(ending);
        }
        file.is_needed = is_needed;
        self.add_part(file);
    }

    /// Adds a part of a state that others may share.
    fn add_part(&mut self, file: NamedFile) {
        let is_needed = file.is_needed;
        let known = self.files.entry(file.path.clone()).or_insert(file);
        known.is_needed |= is_needed;
    }

    /// Adds a text in the codings of the form. `gzip` is an object with the same bytes.
    fn text(&mut self, file: &NamedFile, gzip: Option<&Key>) {
        for coding in self.form.codings() {
            let mut file = NamedFile {
                coding: *coding,
                ..file.clone()
            };
            if *coding == Encoding::Gzip {
                file.object = gzip.cloned();
                if self.form != TreeForm::Bucket {
                    file.path.push_str(".gz");
                }
            }
            self.add(file);
        }
    }

    fn add(&mut self, file: NamedFile) {
        let is_name = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= NAME_MAX && !part.contains('\0');
        // An ending does not make a name of what is none.
        let plain = file.path.strip_suffix(".gz").unwrap_or(&file.path);
        if !plain.split('/').all(is_name) || self.files.contains_key(&file.path) {
            self.left_out.push(file.path);
        } else {
            self.files.insert(file.path.clone(), file);
        }
    }
}
