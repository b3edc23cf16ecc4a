//! Images with what is attached to them, and copying them from one place to another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt, stream};
use model::{ImageReference, Sha256, text::chain};
use olm::RequiredImages;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use source::{Digest, Source, Sources};

use crate::{
    CarryError, SayLine, Skopeo, TargetRegistry, folder::keep_each_once, printable, skopeo::shown,
};

/// Images that are copied at the same time. skopeo copies six layers of each at once.
const COPIES: usize = 4;

/// Folder beside the images for those that are being copied. No registry has this name.
const PARTIAL: &str = ".partial";

/// Maximum size of a manifest in bytes: registries need to take no larger one (OCI distribution
/// specification, "Pushing Manifests").
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// Requests to registries at the same time: enough to hide the delay of a distant one, too few to
/// look like an attack.
const LOOKUPS: usize = 8;

/// Image to copy, or a manifest that is attached to one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CarriedImage {
    /// Reference in the registry that it comes from.
    pub image: String,
    /// Digest that the reference had when the image was listed.
    pub digest: String,
    /// True for a signature, an attestation or another manifest that is attached to an image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
}

/// Place for images.
#[derive(Debug, Clone, Copy)]
pub enum ImagePlace<'a> {
    /// Folder with a folder for each image, in the layout of `skopeo sync --scoped --dest dir`.
    Folder(&'a Path),
    /// Registry with all images.
    Target(&'a TargetRegistry),
}

/// Numbers of a copy.
#[derive(Debug, Default)]
pub struct CopyCounts {
    /// Images that were copied.
    pub copied: usize,
    /// Images that were there.
    pub kept: usize,
    /// Images that were not copied.
    pub failed: usize,
}

/// Lists images with what is attached to them. What fails is said. Returns the images, and the
/// number of failures: an image is listed too if what is attached to it cannot be looked up.
pub async fn list_images(
    sources: &Sources,
    images: impl Iterator<Item = &str>,
    say: SayLine<'_>,
) -> (Vec<CarriedImage>, usize) {
    let lookups = images.map(|image| async move {
        let mut found = Vec::new();
        let listed = list_image(sources, image, &mut found).await;
        (image, found, listed)
    });
    let (mut all, mut failed) = (Vec::new(), 0);
    let mut lookups = stream::iter(lookups).buffer_unordered(LOOKUPS);
    while let Some((image, found, listed)) = lookups.next().await {
        let what = if found.is_empty() {
            ""
        } else {
            "what is attached to "
        };
        all.extend(found);
        if let Err(error) = listed {
            failed += 1;
            let error = chain(&error);
            say(&format!("failed: {what}{}: {error}", printable(image)));
        }
    }
    // What is attached to two images is copied once.
    keep_each_once(&mut all);
    (all, failed)
}

/// Adds the image to `found`, then what is attached to it.
async fn list_image(
    sources: &Sources,
    image: &str,
    found: &mut Vec<CarriedImage>,
) -> Result<(), CarryError> {
    let reference = ImageReference::new(image);
    let source = registry_image(&reference.to_string())?;
    let digest = sources.resolve(&source).await?;
    found.push(CarriedImage {
        image: reference.to_string(),
        digest: digest.to_string(),
        attached: false,
    });
    for version in sources.attachments(&source, &digest).await? {
        let separator = if version.contains(':') { '@' } else { ':' };
        let image = format!("{}{separator}{version}", reference.name());
        found.push(CarriedImage {
            digest: sources.resolve(&registry_image(&image)?).await?.to_string(),
            image,
            attached: true,
        });
    }
    Ok(())
}

impl CarriedImage {
    /// Checks a list that comes from elsewhere: its texts become paths and arguments of a program.
    pub(crate) fn check(&self) -> Result<(), CarryError> {
        registry_image(&self.image)?;
        let is_whole =
            self.reference().to_string() == self.image && self.digest.parse::<Digest>().is_ok();
        is_whole
            .then_some(())
            .ok_or_else(|| no_reference(&self.image))
    }

    /// Returns the parsed reference.
    pub(crate) fn reference(&self) -> ImageReference {
        ImageReference::new(&self.image)
    }

    /// Returns the reference by digest: a tag may have moved since the image was listed.
    fn pinned(&self) -> String {
        format!("{}@{}", self.reference().name(), self.digest)
    }

    /// Returns the place of the image in a registry, in the words of skopeo.
    fn place_in(&self, target: &TargetRegistry) -> String {
        let reference = self.reference();
        let tag = reference.tag.clone().unwrap_or_else(|| {
            // Registries such as Quay remove an image without a tag.
            let hex = self.digest.rsplit(':').next().unwrap_or_default();
            format!("carried-{}", hex.chars().take(32).collect::<String>())
        });
        format!("docker://{}:{tag}", target.place_of(&reference.name()))
    }
}

impl ImagePlace<'_> {
    /// Returns true if the place has the image with its digest.
    async fn has(self, sources: &Sources, image: &CarriedImage) -> Result<bool, CarryError> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(&image.image).join("manifest.json");
                match work::read_file(&path, MANIFEST_BYTES_MAX) {
                    // What is no regular file of the size of a manifest is no copy of one.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::FileTooLarge
                        ) =>
                    {
                        Ok(false)
                    }
                    read => {
                        let manifest = read.map_err(CarryError::file(path))?;
                        Ok(format!("sha256:{}", Sha256::of(&manifest)) == image.digest)
                    }
                }
            }
            Self::Target(target) => {
                let pinned = registry_image(&target.place_of(&image.pinned()))?;
                if !sources.exists(&pinned).await? {
                    return Ok(false);
                }
                if image.reference().digest.is_some() {
                    return Ok(true);
                }
                let tagged = registry_image(&target.place_of(&image.image))?;
                Ok(sources.exists(&tagged).await?
                    && sources.resolve(&tagged).await?.as_str() == image.digest)
            }
        }
    }
}

/// Returns true for the reference of an image that can be pulled, as podman and docker complete it.
/// Others must not reach another program: a space or a dash in one makes options of it.
pub(crate) fn is_image(text: &str) -> bool {
    registry_image(&ImageReference::new(text).to_string()).is_ok()
}

/// Parses the reference of an image in a registry.
fn registry_image(text: &str) -> Result<Source, CarryError> {
    match text.parse() {
        Ok(source @ Source::Registry { .. }) => Ok(source),
        _ => Err(no_reference(text)),
    }
}

fn no_reference(text: &str) -> CarryError {
    CarryError::Refused(format!("{text:?} is no image reference"))
}

fn dir(path: &Path) -> String {
    format!("dir:{}", path.display())
}

/// A copy of many images.
pub struct ImageCopier<'a> {
    /// The program.
    pub skopeo: &'a Skopeo,
    /// Answers of registries about what is there.
    pub sources: &'a Sources,
    /// Folder of the images, filled by another copy. `None`: the registries that their references
    /// name.
    pub from: Option<&'a Path>,
    /// Place for the images.
    pub to: ImagePlace<'a>,
    /// Says the commands and runs none.
    pub dry_run: bool,
    /// Receiver of the commands and of what failed.
    pub say: SayLine<'a>,
}

impl ImageCopier<'_> {
    /// Copies what is missing. Each command is said, and each image that fails.
    pub async fn copy(&self, images: &[CarriedImage]) -> CopyCounts {
        let started = AtomicUsize::new(0);
        let (started, of) = (&started, images.len());
        let copies = images.iter().map(|image| async move {
            let number = started.fetch_add(1, Ordering::Relaxed) + 1;
            (image, self.one(image, number, of).await)
        });
        let mut counts = CopyCounts::default();
        let mut copies = stream::iter(copies).buffer_unordered(COPIES);
        while let Some((image, copied)) = copies.next().await {
            match copied {
                Ok(true) => counts.copied += 1,
                Ok(false) => counts.kept += 1,
                Err(error) => {
                    counts.failed += 1;
                    let error = chain(&error);
                    (self.say)(&format!("failed: {}: {error}", printable(&image.image)));
                }
            }
        }
        counts
    }

    /// Copies an image unless it is there. Returns true if it was copied.
    async fn one(
        &self,
        image: &CarriedImage,
        number: usize,
        of: usize,
    ) -> Result<bool, CarryError> {
        if self.to.has(self.sources, image).await? {
            return Ok(false);
        }
        let from = match self.from {
            None => format!("docker://{}", image.pinned()),
            Some(folder) if ImagePlace::Folder(folder).has(self.sources, image).await? => {
                let path = folder.join(&image.image);
                check_files(&path)?;
                dir(&path)
            }
            Some(_) => {
                return Err(CarryError::refused(
                    "it is not in the folder: run `carry out` again",
                ));
            }
        };
        let folder = match self.to {
            ImagePlace::Folder(folder) => folder,
            ImagePlace::Target(target) => {
                self.run(&from, &image.place_in(target), number, of).await?;
                return Ok(true);
            }
        };
        let path = folder.join(&image.image);
        // With the process in its name, because skopeo may outlive this program and write on.
        let partial = folder
            .join(PARTIAL)
            .join(format!("{}-{number}", std::process::id()));
        self.run(&from, &dir(&partial), number, of).await?;
        if !self.dry_run {
            // An image has its name only when it is whole, also if this process is killed.
            let place = path.parent().unwrap_or(folder);
            let moved = fs::create_dir_all(place).and_then(|()| remove_dir(&path));
            let moved = moved.and_then(|()| fs::rename(&partial, &path));
            moved.map_err(CarryError::file(&path))?;
            if !self.to.has(self.sources, image).await? {
                return Err(CarryError::refused(
                    "the registry sent another image than it named",
                ));
            }
        }
        Ok(true)
    }

    async fn run(&self, from: &str, to: &str, number: usize, of: usize) -> Result<(), CarryError> {
        let words = self.skopeo.command(from, to);
        (self.say)(&format!("[{number}/{of}] {}", shown(&words)));
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

/// Refuses an image with something else than regular files in its folder, for which skopeo would
/// wait.
fn check_files(folder: &Path) -> Result<(), CarryError> {
    for entry in fs::read_dir(folder).map_err(CarryError::file(folder))? {
        let path = entry.map_err(CarryError::file(folder))?.path();
        let found = fs::metadata(&path).map_err(CarryError::file(&path))?;
        if !found.is_file() {
            let reason = io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
            return Err(CarryError::File(path, reason));
        }
    }
    Ok(())
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

/// Asks the registries for every image, by the reference with which it is pulled.
pub async fn check_images(sources: &Sources, needs: &RequiredImages) -> ImageChecks {
    let checks = needs.images.keys().map(|reference| async move {
        let check = match ImageReference::new(reference).to_string().parse::<Source>() {
            Ok(source) => sources.exists(&source).await.map_err(|error| chain(&error)),
            Err(error) => Err(chain(&error)),
        };
        (reference.to_owned(), check)
    });
    stream::iter(checks)
        .buffer_unordered(LOOKUPS)
        .collect()
        .await
}

/// Returns the references of images, sorted. What is none is said: a program that reads the list
/// would take it for something else.
pub fn pullable<'a>(needs: &'a RequiredImages, say: SayLine<'_>) -> Vec<&'a str> {
    let mut images = Vec::new();
    for image in needs.images.keys() {
        if is_image(image) {
            images.push(image.trim());
        } else {
            let image = printable(image);
            say(&format!(
                "warning: {image} is no image reference and is left out"
            ));
        }
    }
    images
}

/// Returns a line for each image that is missing, or about which the registry gave no answer, with
/// the bundles that need it.
pub fn missing(needs: &RequiredImages, checks: &ImageChecks) -> Vec<String> {
    let mut lines = Vec::new();
    for (image, needed_by) in &needs.images {
        let what = match checks.get(image) {
            Some(Ok(true)) | None => continue,
            Some(Ok(false)) => "missing".to_owned(),
            Some(Err(error)) => format!("unknown ({})", printable(error)),
        };
        let bundles: BTreeSet<&str> = needed_by.iter().map(|need| need.bundle.as_str()).collect();
        let bundles = printable(&bundles.into_iter().collect::<Vec<_>>().join(", "));
        let image = printable(image);
        lines.push(format!("{what}: {image}, needed by {bundles}"));
    }
    lines
}

/// Answers by the reference of the image: true if it exists, or the reason for which the registry
/// gave no answer.
pub type ImageChecks = BTreeMap<String, Result<bool, String>>;

/// Returns every image with its uses. `exists` is there with --check only, and null if the registry
/// gave no answer.
pub fn images_document(needs: &RequiredImages, checks: Option<&ImageChecks>) -> Value {
    let images = needs.images.iter().map(|(image, needed_by)| {
        let mut line = json!({"image": image, "neededBy": needed_by});
        match checks.and_then(|checks| checks.get(image)) {
            None => {}
            Some(Ok(exists)) => line["exists"] = json!(exists),
            Some(Err(error)) => {
                line["exists"] = Value::Null;
                line["error"] = json!(error);
            }
        }
        line
    });
    json!({"formatVersion": 1, "images": images.collect::<Vec<_>>()})
}
