//! A git repository that a [`FileServer`] serves in version 2 of the protocol.

mod pack;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::files::FileServer;
use pack::hex_bytes;

pub use pack::{DeltaBuilder, GitKind, PackBuilder, object_name};

/// Answer to the first request of a client.
const CAPABILITIES: &[&str] = &["version 2\n", "agent=testkit\n", "ls-refs=unborn\n", "fetch=shallow\n"];

/// Repository of git in memory. Clones share it.
#[derive(Clone, Default)]
pub struct GitRepo(Arc<Mutex<RepoState>>);

#[derive(Default)]
struct RepoState {
    objects: BTreeMap<String, (GitKind, Vec<u8>)>,
    /// Lines of the list of branches and tags, by name, without name and hash.
    refs: BTreeMap<String, (String, String)>,
    /// Bytes to send in place of a pack of all objects.
    pack: Option<Vec<u8>>,
    /// Bytes to send in place of a whole answer to `fetch`.
    answer: Option<Vec<u8>>,
    commands: Vec<String>,
}

/// Returns one packet line.
pub fn packet(content: &[u8]) -> Vec<u8> {
    [format!("{:04x}", content.len() + 4).as_bytes(), content].concat()
}

/// Returns the content of a tree: `(mode, name, object)`.
pub fn tree(entries: &[(&str, &str, &str)]) -> Vec<u8> {
    let entry = |(mode, name, object): &(&str, &str, &str)| {
        [format!("{mode} {name}\0").as_bytes(), &hex_bytes(object)].concat()
    };
    entries.iter().flat_map(entry).collect()
}

impl GitRepo {
    /// Serves the repository below `path`, such as `/repo.git`.
    pub fn serve(&self, server: &FileServer, path: &str) {
        server.put_tagged(&format!("{path}/info/refs"), self.info(), None);
        let repo = self.clone();
        server.handle(&format!("{path}/git-upload-pack"), move |body| repo.lock().answer(body));
    }

    /// Returns the answer to the first request of a client.
    pub fn info(&self) -> Vec<u8> {
        let lines = CAPABILITIES.iter().flat_map(|line| packet(line.as_bytes()));
        let service = packet(b"# service=git-upload-pack\n").into_iter().chain(*b"0000");
        service.chain(lines).chain(*b"0000").collect()
    }

    /// Returns the size of all objects, in bytes.
    pub fn size(&self) -> u64 {
        self.lock()
            .objects
            .values()
            .map(|(_, content)| content.len() as u64)
            .sum()
    }

    /// Stores an object. Returns its name.
    pub fn object(&self, kind: GitKind, content: impl Into<Vec<u8>>) -> String {
        let content = content.into();
        let name = object_name(kind, &content);
        self.lock().objects.insert(name.clone(), (kind, content));
        name
    }

    /// Returns the content of a stored object.
    pub fn content(&self, name: &str) -> Vec<u8> {
        self.lock().objects[name].1.clone()
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
        self.object(GitKind::Commit, commit)
    }

    /// Stores the trees of these files. Returns the name of the topmost.
    pub fn folder(&self, files: &[(&str, &str)]) -> String {
        let mut folders: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        let mut entries = Vec::new();
        for (path, content) in files {
            match path.split_once('/') {
                Some((folder, rest)) => folders.entry(folder).or_default().push((rest, content)),
                None => entries.push(("100644", *path, self.object(GitKind::Blob, *content))),
            }
        }
        entries.extend(folders.iter().map(|(name, files)| ("40000", *name, self.folder(files))));
        // In git's order: a folder sorts as if it ended in a slash.
        entries.sort_by_key(|(mode, name, _)| format!("{name}{}", if *mode == "40000" { "/" } else { "" }));
        let entries: Vec<_> = entries
            .iter()
            .map(|(mode, name, object)| (*mode, *name, object.as_str()))
            .collect();
        self.object(GitKind::Tree, tree(&entries))
    }

    /// Sets a branch or tag, by its full name.
    pub fn set(&self, name: &str, object: &str) {
        self.lock()
            .refs
            .insert(name.to_owned(), (object.to_owned(), String::new()));
    }

    /// Sets an annotated tag of a commit.
    pub fn set_annotated(&self, name: &str, commit: &str) {
        let tag = format!("object {commit}\ntype commit\ntag x\ntagger a <a@a.io> 1700000000 +0000\n\nx\n");
        let tag = self.object(GitKind::Tag, tag);
        self.lock()
            .refs
            .insert(name.to_owned(), (tag, format!(" peeled:{commit}")));
    }

    /// Removes a branch or tag.
    pub fn remove(&self, name: &str) {
        self.lock().refs.remove(name);
    }

    /// Sends these bytes in place of a pack of all objects.
    pub fn send_pack(&self, pack: Vec<u8>) {
        self.lock().pack = Some(pack);
    }

    /// Sends these bytes in place of a whole answer to `fetch`.
    pub fn send_answer(&self, answer: Vec<u8>) {
        self.lock().answer = Some(answer);
    }

    /// Returns a pack of all objects.
    pub fn pack(&self) -> PackBuilder {
        self.lock().pack()
    }

    /// Returns the bodies of all commands so far.
    pub fn commands(&self) -> Vec<String> {
        self.lock().commands.clone()
    }

    fn lock(&self) -> MutexGuard<'_, RepoState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RepoState {
    fn pack(&self) -> PackBuilder {
        let objects = self.objects.values();
        objects.fold(PackBuilder::default(), |pack, (kind, content)| {
            pack.object(*kind, content)
        })
    }

    fn answer(&mut self, body: &[u8]) -> Vec<u8> {
        let command = String::from_utf8_lossy(body).into_owned();
        self.commands.push(command.clone());
        if command.contains("command=ls-refs") {
            return self.list(&command);
        }
        let wanted = command
            .split("want ")
            .nth(1)
            .and_then(|rest| rest.get(..40))
            .unwrap_or_default();
        if let Some(answer) = &self.answer {
            return answer.clone();
        }
        if !self.objects.contains_key(wanted) {
            return packet(format!("ERR upload-pack: not our ref {wanted}").as_bytes());
        }
        let pack = self.pack.clone().unwrap_or_else(|| self.pack().finish());
        let mut answer = [
            packet(b"shallow-info\n"),
            packet(format!("shallow {wanted}\n").as_bytes()),
        ]
        .concat();
        answer.extend_from_slice(b"0001");
        answer.extend(packet(b"packfile\n"));
        answer.extend(packet(b"\x02counting objects\n"));
        // Packets that split objects at odd places.
        for chunk in pack.chunks(60_001) {
            answer.extend(packet(&[b"\x01", chunk].concat()));
        }
        answer.extend_from_slice(b"0000");
        answer
    }

    fn list(&self, command: &str) -> Vec<u8> {
        let prefixes: Vec<_> = command
            .lines()
            .filter_map(|line| line.split_once("ref-prefix "))
            .collect();
        let mut answer = Vec::new();
        for (name, (object, attributes)) in &self.refs {
            if prefixes.is_empty() || prefixes.iter().any(|(_, prefix)| name.starts_with(prefix)) {
                answer.extend(packet(format!("{object} {name}{attributes}\n").as_bytes()));
            }
        }
        answer.extend_from_slice(b"0000");
        answer
    }
}
