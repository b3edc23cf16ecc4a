use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testkit::S3;

use super::binary::{self, Ran, Server};
use super::catalogs::{self, Files};

/// A folder in which the binary runs. Its store is `store`, and `example` is the layout of the
/// example catalog.
pub(crate) struct Work {
    folder: TempDir,
}

impl Work {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        symlink(catalogs::example_layout(), folder.path().join("example"))
            .expect("the folder is empty");
        Self { folder }
    }

    /// Returns a folder whose store has the first version of the example as `demo`.
    pub(crate) fn published() -> Self {
        let work = Self::new();
        work.poll("v1").exits(0);
        work
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        catalogs::write(self.root(), name, content.as_ref());
    }

    pub(crate) fn write_all(&self, folder: &str, files: &Files) {
        for (path, content) in files {
            self.write(&format!("{folder}/{path}"), content);
        }
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("the file is JSON")
    }

    /// Returns the command of a line such as `ls --store store`. Spaces part its words.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = binary::command(line.split_whitespace());
        command.current_dir(self.root());
        command
    }

    /// Runs a line such as `ls --store store` to its end.
    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::of(&mut self.command(line))
    }

    /// Runs a line that names a place in a bucket.
    pub(crate) fn run_on_s3(&self, bucket: &S3, line: &str) -> Ran {
        let options = "--s3-path-style --s3-region us-east-1 --s3-endpoint";
        let mut command = self.command(&format!("{line} {options} {}", bucket.url()));
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            command.env(name, "test");
        }
        Ran::of(command.env("AWS_EC2_METADATA_DISABLED", "true"))
    }

    /// Runs the lines of a transcript. A line begins with the expected exit code. Below it stand
    /// texts of its output: after `>` of standard output, after `!` of standard error, and after
    /// `-` one that neither has.
    #[track_caller]
    pub(crate) fn plays(&self, transcript: &str) {
        let mut ran: Option<Ran> = None;
        for line in transcript
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            let (mark, rest) = line.split_once(' ').expect("a line has a mark and a text");
            match (mark, &ran) {
                (">", Some(ran)) => ran.prints(rest),
                ("!", Some(ran)) => ran.complains(rest),
                ("-", Some(ran)) => assert!(
                    ![&ran.stdout, &ran.stderr]
                        .iter()
                        .any(|text| text.contains(rest)),
                    "{ran:#?}"
                ),
                _ => {
                    ran = Some(
                        self.run(rest)
                            .exits(mark.parse().expect("an exit code is a number")),
                    );
                }
            }
        }
    }

    /// Polls a version of the example as `demo`.
    pub(crate) fn poll(&self, version: &str) -> Ran {
        self.run(&format!(
            "poll --store store --catalog demo=oci:example:{version}"
        ))
    }

    /// Polls `source` as `demo`, from a host without TLS. The exit code tells a publication.
    pub(crate) fn poll_plain(&self, host: &str, source: &str) -> Ran {
        self.run(&format!(
            "poll --detailed-exitcode --store store --plain-http {host} --catalog demo={source}"
        ))
    }

    /// Serves the store without polls.
    pub(crate) fn serve(&self, options: &str) -> Server {
        Server::of(self.command(&format!("serve --no-poll --store store {options}")))
    }
}
