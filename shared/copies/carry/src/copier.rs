//! Copying of images from one place to another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use model::text::chain;
use serde::Serialize;
use source::{Digest, Reference, Source, Sources};

use crate::image_folder::ImageFolder;
use crate::images::{disk_path, registry_image};
use crate::prune::{additional_tag, is_list_tag, mark_tag};
use crate::skopeo::shown;
use crate::{CarriedImage, CarryError, MissingImage, SayLine, Skopeo, TargetRegistry};

/// Images that are copied at the same time. skopeo copies six layers of each at once.
const COPIES: usize = 4;

/// Folder beside the images for those that are being copied. No registry has this name.
const PARTIAL: &str = ".partial";

/// Place for images.
#[derive(Debug, Clone, Copy)]
pub enum ImagePlace<'a> {
    /// Folder with a folder for each image, as `skopeo sync --scoped --dest dir` writes it, but with
    /// names that every file system takes.
    Folder(&'a Path),
    /// Registry with all images.
    Target(&'a TargetRegistry),
}

/// Result of a copy.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyReport {
    /// Number of images that were copied; in a dry run, that would be.
    pub copied: usize,
    /// Number of images that were there.
    pub kept: usize,
    /// Bytes of the images to copy, each blob once. Counted in a dry run alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Images that were not copied.
    pub missing: Vec<MissingImage>,
}

impl CopyReport {
    /// Adds the result of another copy.
    pub fn add(&mut self, other: Self) {
        self.copied += other.copied;
        self.kept += other.kept;
        if let Some(bytes) = other.bytes {
            *self.bytes.get_or_insert(0) += bytes;
        }
        self.missing.extend(other.missing);
    }
}

impl ImagePlace<'_> {
    /// Returns the list of referrers that the place has in place of one that is copied.
    async fn other_list(
        self,
        sources: &Sources,
        image: &CarriedImage,
    ) -> Result<Option<OtherList>, CarryError> {
        let Self::Target(target) = self else {
            return Ok(None);
        };
        let Some(tag) = image.reference().tag.filter(|tag| is_list_tag(tag)) else {
            return Ok(None);
        };
        let place = registry_image(&target.place_of(&image.image))?;
        if !image.attached || !sources.exists(&place).await? {
            return Ok(None);
        }
        let Source::Registry { reference, .. } = place else {
            return Ok(None);
        };
        Ok(Some(OtherList {
            reference,
            tag,
            digest: parsed(&image.digest)?,
        }))
    }

    /// Returns true if the place has the whole image with its digest.
    async fn has(
        self,
        sources: &Sources,
        image: &CarriedImage,
        rechecks: bool,
    ) -> Result<bool, CarryError> {
        match self {
            Self::Folder(folder) => {
                let path = image.folder_in(folder);
                let image_folder = ImageFolder {
                    path: &path,
                    hashes: rechecks,
                    is_sparse: image.is_sparse(),
                };
                Ok(image_folder.fault(&image.digest)?.is_none())
            }
            Self::Target(target) => {
                if let Some(place) = &image.target {
                    let place = registry_image(&target.own(place))?;
                    return has_digest(sources, &place, &image.digest).await;
                }
                let pinned = registry_image(&target.place_of(&image.pinned()))?;
                if !sources.exists(&pinned).await? {
                    return Ok(false);
                }
                if image.reference().digest.is_some() {
                    return Ok(true);
                }
                let tagged = registry_image(&target.place_of(&image.image))?;
                if has_digest(sources, &tagged, &image.digest).await? {
                    return Ok(true);
                }
                let list = self.other_list(sources, image).await?;
                let Some(list) = list else {
                    return Ok(false);
                };
                let lacks = list.merge(sources, false).await?;
                Ok(!lacks)
            }
        }
    }
}

/// List of what is attached to an image, which the registry has too, with other entries.
struct OtherList {
    reference: Reference,
    tag: String,
    digest: Digest,
}

impl OtherList {
    /// Adds what the list of the registry lacks. Returns true if it lacked something.
    async fn merge(&self, sources: &Sources, writes: bool) -> Result<bool, CarryError> {
        let merging = sources.merge_referrers(&self.reference, &self.tag, &self.digest, writes);
        Ok(merging.await?)
    }
}

/// Returns true if a registry has a place with this digest.
async fn has_digest(sources: &Sources, place: &Source, digest: &str) -> Result<bool, CarryError> {
    if !sources.exists(place).await? {
        return Ok(false);
    }
    Ok(sources.resolve(place).await?.as_str() == digest)
}

/// A copy of many images.
pub struct ImageCopier<'a> {
    /// The program.
    pub skopeo: &'a Skopeo,
    /// Answers of registries about what is there.
    pub sources: &'a Sources,
    /// Registries that the images come from, with their mirrors.
    pub origins: &'a Sources,
    /// Folder of the images, filled by another copy. `None`: the registries that their references
    /// name.
    pub from: Option<&'a Path>,
    /// Place for the images.
    pub to: ImagePlace<'a>,
    /// Says the commands and runs none.
    pub dry_run: bool,
    /// Hashes each file of an image in a folder, instead of comparing sizes only.
    pub rechecks: bool,
    /// Receiver of what failed.
    pub say: SayLine<'a>,
    /// Receiver of the commands and of notices.
    pub note: SayLine<'a>,
}

impl ImageCopier<'_> {
    /// Copies what is missing. Each command is said, and each image that fails.
    pub async fn copy(&self, images: &[CarriedImage]) -> CopyReport {
        let mut report = CopyReport {
            bytes: self.dry_run.then_some(0),
            ..CopyReport::default()
        };
        let whole = images.iter().filter(|image| !image.is_sparse());
        let whole: Vec<&CarriedImage> = whole.collect();
        self.copy_some(&whole, &mut report).await;
        // An index comes after its images: it is of no use without them.
        let mut complete = Vec::new();
        for image in images.iter().filter(|image| image.is_sparse()) {
            match lost_part(image, &report.missing) {
                None => complete.push(image),
                Some(cause) => {
                    let missing = MissingImage::new(&image.image, cause);
                    missing.report(&mut report.missing, self.say);
                }
            }
        }
        self.copy_some(&complete, &mut report).await;
        report.missing.sort();
        report
    }

    async fn copy_some(&self, images: &[&CarriedImage], report: &mut CopyReport) {
        let started = AtomicUsize::new(0);
        let mut seen = BTreeSet::new();
        let started = &started;
        let of = images.len();
        let copies = images.iter().map(|&image| async move {
            let number = started.fetch_add(1, Ordering::Relaxed) + 1;
            (image, self.one(image, number, of).await)
        });
        let mut copies = stream::iter(copies).buffer_unordered(COPIES);
        while let Some((image, copied)) = copies.next().await {
            match copied {
                Ok(Some(sizes)) => {
                    report.copied += 1;
                    for (digest, bytes) in sizes {
                        if seen.insert(digest)
                            && let Some(total) = &mut report.bytes
                        {
                            *total += bytes;
                        }
                    }
                }
                Ok(None) => report.kept += 1,
                Err(error) => {
                    let missing = MissingImage {
                        attached: image.attached,
                        ..MissingImage::new(&image.image, chain(&error))
                    };
                    missing.report(&mut report.missing, self.say);
                }
            }
        }
    }

    /// Copies an image unless it is there. Returns the sizes of what it consists of, in a dry run; none
    /// after a copy; and `None` if it is there.
    async fn one(
        &self,
        image: &CarriedImage,
        number: usize,
        of: usize,
    ) -> Result<Option<BTreeMap<String, u64>>, CarryError> {
        if self.to.has(self.sources, image, self.rechecks).await? {
            // A catalog may have needed it until now.
            if let (ImagePlace::Target(target), true) = (self.to, image.additional && !self.dry_run)
            {
                self.mark(image, target).await;
            }
            return Ok(None);
        }
        let from = match self.from {
            None => {
                self.check_origin(image).await?;
                format!("docker://{}", image.pinned())
            }
            Some(folder) => dir(&self.whole_folder(folder, image)?),
        };
        let mut sizes = BTreeMap::new();
        if self.dry_run {
            sizes = self.sizes(image).await?;
        }
        let folder = match self.to {
            ImagePlace::Folder(folder) => folder,
            ImagePlace::Target(target) => {
                let list = self.to.other_list(self.sources, image).await?;
                let place = match &list {
                    None => image.place_in(target),
                    // Under another tag, because that of the list has entries of the site.
                    Some(_) => image.by_digest().place_in(target),
                };
                self.run(image, &from, &place, number, of).await?;
                if let Some(list) = list.filter(|_| !self.dry_run) {
                    list.merge(self.sources, true).await?;
                    return Ok(Some(sizes));
                }
                if !self.dry_run {
                    self.mark(image, target).await;
                }
                return Ok(Some(sizes));
            }
        };
        let path = folder.join(disk_path(&image.image));
        // With the process in its name, because skopeo may outlive this program and write on.
        let partial = folder
            .join(PARTIAL)
            .join(format!("{}-{number}", std::process::id()));
        self.run(image, &from, &dir(&partial), number, of).await?;
        if !self.dry_run {
            // An image has its name only when it is whole, also if this process is killed.
            let place = path.parent().unwrap_or(folder);
            // A damaged one that an earlier version wrote has another name.
            let earlier = image.folder_in(folder);
            let moved = fs::create_dir_all(place).and_then(|()| remove_dir(&earlier));
            let moved = moved.and_then(|()| fs::rename(&partial, &path));
            moved.map_err(CarryError::file(&path))?;
            if !self.to.has(self.sources, image, false).await? {
                return Err(CarryError::refused(
                    "the registry sent another image than it named",
                ));
            }
        }
        Ok(Some(sizes))
    }

    /// Asks the registry of an image for it. skopeo waits many minutes for a registry that answers 429,
    /// however long that asks it to wait.
    async fn check_origin(&self, image: &CarriedImage) -> Result<(), CarryError> {
        let source = registry_image(&image.pinned())?;
        if !self.origins.exists(&source).await? {
            return Err(CarryError::refused("its registry does not have it"));
        }
        Ok(())
    }

    /// Returns the sizes of what an image consists of, by digest.
    async fn sizes(&self, image: &CarriedImage) -> Result<BTreeMap<String, u64>, CarryError> {
        let is_sparse = image.is_sparse();
        if let Some(folder) = self.from {
            let path = image.folder_in(folder);
            let image_folder = ImageFolder {
                path: &path,
                hashes: false,
                is_sparse,
            };
            return image_folder.sizes(&image.digest);
        }
        let source = registry_image(&image.pinned())?;
        let digest = self.origins.resolve(&source).await?;
        let sizes = self
            .origins
            .image_sizes(&source, &digest, is_sparse)
            .await?;
        let named = sizes.into_iter();
        Ok(named
            .map(|(digest, bytes)| (digest.to_string(), bytes))
            .collect())
    }

    /// Gives an image the tag by which `carry prune` knows it: an additional one, which stays, or one
    /// that was copied under its own tag. Without it the image stays.
    async fn mark(&self, image: &CarriedImage, target: &TargetRegistry) {
        let reference = image.reference();
        let mark = match &reference.tag {
            _ if image.target.is_some() => return,
            _ if image.additional => additional_tag(&image.digest),
            Some(tag) => mark_tag(&image.digest, tag),
            None => return,
        };
        if let Err(error) = self.try_mark(image, &mark, target).await {
            (self.note)(&format!(
                "notice: {}: it cannot be marked for `carry prune`: {}",
                image.image,
                chain(&error)
            ));
        }
    }

    async fn try_mark(
        &self,
        image: &CarriedImage,
        mark: &str,
        target: &TargetRegistry,
    ) -> Result<(), CarryError> {
        let place = registry_image(&target.place_of(&image.image))?;
        let Source::Registry { reference, .. } = &place else {
            return Ok(());
        };
        let digest = parsed(&image.digest)?;
        Ok(self.sources.add_tag(reference, &digest, mark).await?)
    }

    /// Returns the folder of an image that was copied before, if it is whole.
    fn whole_folder(&self, folder: &Path, image: &CarriedImage) -> Result<PathBuf, CarryError> {
        let path = image.folder_in(folder);
        let image_folder = ImageFolder {
            path: &path,
            hashes: self.rechecks,
            is_sparse: image.is_sparse(),
        };
        if !path.exists() {
            return Err(CarryError::refused(
                "it is not in the folder: run `carry out` again",
            ));
        }
        image_folder.check_files()?;
        match image_folder.fault(&image.digest)? {
            None => Ok(path),
            Some(fault) => Err(CarryError::Refused(format!(
                "it is not whole in the folder ({fault}): run `carry out` again"
            ))),
        }
    }

    async fn run(
        &self,
        image: &CarriedImage,
        from: &str,
        to: &str,
        number: usize,
        of: usize,
    ) -> Result<(), CarryError> {
        let words = self.skopeo.command(from, to, image.is_sparse());
        (self.note)(&format!("[{number}/{of}] {}", shown(&words)));
        if self.dry_run {
            return Ok(());
        }
        if let Some(folder) = to
            .strip_prefix("dir:")
            .and_then(|path| Path::new(path).parent())
        {
            fs::create_dir_all(folder).map_err(CarryError::file(folder))?;
        }
        self.skopeo.run(&words).await
    }
}

/// Returns the cause for which an index is of no use, if one of its images is missing.
fn lost_part(image: &CarriedImage, missing: &[MissingImage]) -> Option<String> {
    let name = image.reference().name();
    image.parts.iter().find_map(|part| {
        let part = format!("{name}@{part}");
        let lost = missing.iter().find(|missing| missing.image == part)?;
        Some(format!("its part {part} is missing: {}", lost.cause))
    })
}

/// Parses the digest of an image.
fn parsed(digest: &str) -> Result<Digest, CarryError> {
    let parsed = digest.parse::<Digest>();
    parsed.map_err(|error| CarryError::refused(error.to_string()))
}

/// Removes the images that are half copied, as far as possible: a skopeo that outlives a killed
/// process may still write them.
pub fn remove_partial(folder: &Path) {
    fs::remove_dir_all(folder.join(PARTIAL)).ok();
}

fn remove_dir(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn dir(path: &Path) -> String {
    format!("dir:{}", path.display())
}
