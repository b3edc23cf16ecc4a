//! A git repository on disk, which git itself serves through a [`FileServer`] in version 2 of the
//! protocol.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::files::FileServer;

/// Bare repository in a temporary folder. Clones share it.
#[derive(Clone)]
pub struct GitRepo {
    folder: Arc<TempDir>,
    commands: Arc<Mutex<Vec<String>>>,
}

/// Returns the content of a tree: `(mode, name, object)`.
pub fn tree(entries: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (mode, name, object) in entries {
        content.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        content.extend(hex_bytes(object));
    }
    content
}

impl Default for GitRepo {
    fn default() -> Self {
        let repo = Self {
            folder: Arc::new(TempDir::new().expect("there is a folder for temporary files")),
            commands: Arc::default(),
        };
        git(repo.path(), &["init", "--quiet", "--bare"], &[]);
        repo
    }
}

impl GitRepo {
    /// Serves the repository below `path`, such as `/repo.git`.
    pub fn serve(&self, server: &FileServer, path: &str) {
        let capabilities = git(self.path(), &["upload-pack", "--advertise-refs", "."], &[]);
        let info = [&b"001e# service=git-upload-pack\n0000"[..], &capabilities].concat();
        server.put_tagged(&format!("{path}/info/refs"), info, None);
        let repo = self.clone();
        server.handle(&format!("{path}/git-upload-pack"), move |body| {
            let command = String::from_utf8_lossy(body).into_owned();
            repo.commands.lock().push(command);
            git(repo.path(), &["upload-pack", "--stateless-rpc", "."], body)
        });
    }

    /// Stores an object, also one that git would not write. Returns its name.
    pub fn object(&self, kind: &str, content: impl AsRef<[u8]>) -> String {
        let arguments = ["hash-object", "-w", "--stdin", "--literally", "-t", kind];
        name(&git(self.path(), &arguments, content.as_ref()))
    }

    /// Stores a commit of these files. Returns its name.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        let tree = self.folder(files);
        self.commit_of(&tree)
    }

    /// Stores a commit of a tree. Returns its name.
    pub fn commit_of(&self, tree: &str) -> String {
        let person = "a <a@a.io> 1700000000 +0000";
        let commit = format!("tree {tree}\nauthor {person}\ncommitter {person}\n\nmessage\n");
        self.object("commit", commit)
    }

    /// Stores a commit of a tree of these entries. Returns its name.
    pub fn commit_of_entries(&self, entries: &[(&str, &str, &str)]) -> String {
        self.commit_of(&self.object("tree", tree(entries)))
    }

    /// Stores the trees of these files. Returns the name of the topmost.
    pub fn folder(&self, files: &[(&str, &str)]) -> String {
        let mut index = String::new();
        for (path, content) in files {
            let blob = self.object("blob", content);
            index += &format!("100644 {blob}\t{path}\n");
        }
        git(self.path(), &["read-tree", "--empty"], &[]);
        let update = ["update-index", "--add", "--index-info"];
        git(self.path(), &update, index.as_bytes());
        name(&git(self.path(), &["write-tree"], &[]))
    }

    /// Sets a branch or tag, by its full name, also to what is no commit.
    pub fn set(&self, name: &str, object: &str) {
        let file = self.path().join(name);
        let folder = file.parent().expect("a reference is in a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(&file, format!("{object}\n")).expect("the folder is writable");
    }

    /// Sets an annotated tag of a commit.
    pub fn set_annotated(&self, name: &str, commit: &str) {
        let tag = format!(
            "object {commit}\ntype commit\ntag x\ntagger a <a@a.io> 1700000000 +0000\n\nx\n"
        );
        self.set(name, &self.object("tag", tag));
    }

    /// Removes a branch or tag.
    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).expect("the reference is there");
    }

    /// Returns the bodies of all commands so far.
    pub fn commands(&self) -> Vec<String> {
        self.commands.lock().clone()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs git in a folder and returns its output, whatever its exit code is: a server sends also its
/// errors.
fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut process = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_PROTOCOL", "version=2")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("git is on the path");
    let mut stdin = process.stdin.take().expect("it is a pipe");
    // Git may end before it has read everything.
    let _ = stdin.write_all(input);
    drop(stdin);
    process.wait_with_output().expect("git ends").stdout
}

/// Returns the name of an object that git has printed.
fn name(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}

fn hex_bytes(hex: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for digits in hex.as_bytes().chunks(2) {
        let digits = std::str::from_utf8(digits).expect("a name is hex");
        bytes.push(u8::from_str_radix(digits, 16).expect("a name is hex"));
    }
    bytes
}
