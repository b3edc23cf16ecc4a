//! Reads an image through the public interface, from a layout in memory.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Read};
use std::path::PathBuf;

use source::{EmptyLayers, Error, FileSink, ImageLimits, Source, SourceSettings, Sources};
use tempfile::TempDir;
use testkit::Image;

use crate::runtime::run;

thread_local! {
    /// Sources with small limits, so that an input of a few kilobytes takes little time.
    static IMAGES: Sources = {
        let limits = ImageLimits {
            decompressed_bytes: 16 << 20,
            file_bytes: 8 << 20,
            entries: 10_000,
            ..ImageLimits::default()
        };
        let settings = SourceSettings { limits, ..SourceSettings::default() };
        Sources::new(settings).expect("the settings work")
    };
}

/// Files and links that the reader reports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) links: BTreeMap<String, String>,
}

impl FileSink for Seen {
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        assert_eq!(bytes.len() as u64, size, "{path}");
        let before = self.files.insert(path.to_owned(), bytes);
        assert_eq!(before, None, "{path} comes twice");
        Ok(())
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        assert!(self.files.contains_key(target), "{path} leads to {target}");
        let before = self.links.insert(path.to_owned(), target.to_owned());
        assert!(
            before.is_none() && !self.files.contains_key(path),
            "{path} comes twice"
        );
        Ok(())
    }
}

impl Seen {
    /// Returns every readable file with its content.
    pub(crate) fn contents(mut self) -> BTreeMap<String, Vec<u8>> {
        for (path, target) in &self.links {
            let content = self.files[target].clone();
            self.files.insert(path.clone(), content);
        }
        self.files
    }
}

/// Reads an image from a layout.
///
/// # Panics
/// If the reader panics.
pub(crate) fn read(image: &Image) -> Result<Seen, Error> {
    let dir = TempDir::new_in(in_memory()).expect("a temporary folder can be made");
    image.write_layout(dir.path(), None);
    let source = Source::OciLayout {
        dir: dir.path().to_owned(),
        tag: None,
    };
    let digest = image.digest.parse().expect("a digest");
    let images = IMAGES.with(Sources::clone);
    let read = run(images.read(&source, &digest, &EmptyLayers::default(), Seen::default()));
    match read {
        Ok((seen, _)) => Ok(seen),
        Err(Error::Task(panic)) => panic!("{panic}"),
        Err(error) => Err(error),
    }
}

/// Returns a folder for temporary files, in memory if possible.
pub(crate) fn in_memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        env::temp_dir()
    }
}
