//! git(1) with no other settings than those given here.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use fetch::{RequestSpec, USER_AGENT, authority};
use oci::{BlobRef, Digest, FileSink, NamedLimit, Root, shown};
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use walkdir::WalkDir;
use work::Budget;

use crate::download::temporary_folder;
use crate::server::{WebClient, WebSession};
use crate::space::give_back;
use crate::stream::bounded;
use crate::tree::TreeArchive;
use crate::{Error, GitLocation, Pull, TreeFault};

/// Path below the repository's URL that answers with what the server can.
const INFO: &str = "/info/refs";

/// Media type of the answer (gitprotocol-http(5)).
const ADVERTISEMENT: &[u8] = b"application/x-git-upload-pack-advertisement";

/// Limits the size of a file in blocks of 512 bytes and the memory in KiB. Both hold for all
/// processes that git starts.
const SCRIPT: &str = r#"ulimit -f "$0"; ulimit -d "$1"; shift; exec git "$@""#;

/// Memory of one process of git: 1 GiB. Files are streamed, but an object that is stored as a delta
/// is held with its base.
const MEMORY_KIB: &str = "1048576";

/// Exit status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Variables that do not depend on the source. The folder of the process is the repository, and
/// holds nothing else.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_DIR", "."),
    ("HOME", "."),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_ALLOW_PROTOCOL", "https:http"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
];

/// Settings that do not depend on the source.
const SETTINGS: &[(&str, &str)] = &[
    // A redirect would take the credentials along.
    ("http.followRedirects", "false"),
    ("core.hooksPath", "/dev/null"),
    ("fetch.recurseSubmodules", "false"),
    ("maintenance.auto", "false"),
    ("protocol.version", "2"),
    // Larger files are streamed and not held in memory.
    ("core.bigFileThreshold", "1m"),
    // Each thread would hold objects of its own.
    ("pack.threads", "1"),
    // One pack, and no file for each object.
    ("fetch.unpackLimit", "1"),
];

/// Names that no checkout can have.
const NO_NAMES: &[&str] = &["", ".", "..", ".git"];

/// Interval between two measurements of the files that a command writes.
const MEASURE_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum length of an error of git that is kept, in bytes.
const MESSAGE_BYTES: u64 = 4096;

/// Files for the output and the errors of a command.
const OUTPUT: &str = "output";
const ERRORS: &str = "errors";

/// An empty repository in a temporary folder, and one on a server.
pub(super) struct GitProgram<'a> {
    location: &'a GitLocation,
    pub(super) session: WebSession<'a>,
    /// URL of the repository after redirects on its server.
    url: Url,
    dir: TempDir,
    environment: Vec<(OsString, OsString)>,
}

/// A running command. When dropped, it is killed with all processes that it has started.
struct GitProcess(Child);

impl<'a> GitProgram<'a> {
    /// Asks the server for the repository, and makes an empty one beside it.
    pub(super) async fn open(
        client: WebClient<'a>,
        location: &'a GitLocation,
    ) -> Result<Self, Error> {
        let session = WebSession::open(client, &location.url).await?;
        let url = find(&session, location).await?;
        let dir = temporary_folder()?;
        let ca_file = dir.path().join("ca.pem");
        if url.scheme() == "https" {
            let bundle = client.fetcher.ca_bundle();
            fs::write(&ca_file, bundle).map_err(Error::writing(&ca_file))?;
        }
        let proxy = session.server.fetched(client.fetcher.proxy(&url))?;
        let program = Self {
            location,
            environment: environment(&session, proxy, ca_file.into()),
            session,
            url,
            dir,
        };
        let limit = client.settings.limits.manifest();
        let init = ["init", "--quiet", "--bare", "--template="];
        program.run(&init, limit).await?;
        Ok(program)
    }

    /// Returns the commit that the source means now.
    pub(super) async fn resolve(&self) -> Result<String, Error> {
        let name = self.location.reference.as_deref().unwrap_or("HEAD");
        let limit = self.session.settings.limits.manifest();
        // The commit of an annotated tag has the tag's name with ^{}.
        let peeled = format!("{name}^{{}}");
        let arguments = ["ls-remote", self.url.as_str(), name, &peeled];
        let refs = self.run(&arguments, limit).await?;
        // As git resolves a name.
        for prefix in ["", "refs/", "refs/tags/", "refs/heads/"] {
            let peeled = commit_of(&refs, &format!("{prefix}{name}^{{}}"));
            let commit = peeled.or_else(|| commit_of(&refs, &format!("{prefix}{name}")));
            if let Some(commit) = commit {
                return Ok(commit.to_owned());
            }
        }
        Err(TreeFault::NoRef(shown(name.as_bytes())).at(self.location))
    }

    /// Returns the commit with the revision `expected`: the one that was resolved, even if its
    /// branch has moved since.
    pub(super) async fn commit(
        &self,
        resolved: Option<String>,
        expected: &Digest,
    ) -> Result<String, Error> {
        // A pinned source was not resolved: its reference is the commit.
        if let Some(known) = resolved.or_else(|| self.location.reference.clone())
            && self.location.revision(&known) == *expected
        {
            return Ok(known);
        }
        let commit = self.resolve().await?;
        if self.location.revision(&commit) != *expected {
            return Err(TreeFault::Changed.at(self.location));
        }
        Ok(commit)
    }

    /// Fetches a commit and passes the files of its folder to `sink`.
    pub(super) async fn read<S: FileSink + 'static>(
        &self,
        commit: &str,
        sink: S,
    ) -> Result<(S, Pull), Error> {
        let settings = self.session.settings;
        let limit = settings.download_limit();
        let place = || self.location.to_string();
        let mut space = settings.download_space.take(limit.value, place).await?;
        let fetch = [
            "fetch",
            "--quiet",
            // Without its history. A filter would not spare the files of other folders: servers
            // refuse one by path.
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            self.url.as_str(),
            commit,
        ];
        self.run(&fetch, limit).await?;
        give_back(&mut space, self.stored(""));

        let pack_bytes = self.stored(".pack");
        let archive = TreeArchive {
            place: place(),
            blob: BlobRef {
                digest: self.location.revision(commit),
                size: pack_bytes,
            },
            limits: settings.limits.clone(),
            work: Budget::default(),
        };
        let work = archive.work.clone();
        let root = Root::plain(self.location.folder.clone());
        let folder = root.path();
        // A tree and not the commit, which would add its name to the archive.
        let tree = format!("{commit}^{{tree}}");
        let mut arguments = vec!["archive", "--format=tar", "--worktree-attributes"];
        arguments.extend([&tree, "--"]);
        if !folder.is_empty() {
            arguments.push(&folder);
        }
        let (tar, output) = io::pipe().map_err(|error| self.failed(&error))?;
        let mut process = self.start(&arguments, MESSAGE_BYTES, output.into())?;
        let unpacked = bounded(&work, move || {
            archive.unpack(&mut BufReader::new(tar), root, sink)
        })
        .await;
        // A process that ends by itself has the reason; a signal only says that its output is not
        // read any more.
        if let Ok(status) = process.0.wait().await
            && status.code().is_some_and(|code| code != 0)
        {
            return Err(TreeFault::Commit(self.message(status)).at(self.location));
        }
        let sink = unpacked?;
        self.check_names(&tree, &folder).await?;
        let mut traffic = self.session.server.fetcher.traffic();
        // Those of git: the list of what the server can, and the pack.
        traffic.requests += 2;
        traffic.bytes += pack_bytes;
        let pull = Pull {
            traffic,
            layers_fetched: 1,
            ..Pull::default()
        };
        Ok((sink, pull))
    }

    /// Refuses submodules, which an archive of git has as empty folders, and names that no checkout
    /// can have. The list is shorter than the archive, whose limits hold.
    async fn check_names(&self, tree: &str, folder: &str) -> Result<(), Error> {
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", "--", tree];
        if !folder.is_empty() {
            arguments.push(folder);
        }
        let most = self.session.settings.limits.decompressed_bytes;
        let limit = NamedLimit::new("decompressedBytes", most);
        let list = self.run(&arguments, limit).await?;
        for line in list.split('\0') {
            let Some((columns, path)) = line.split_once('\t') else {
                continue;
            };
            if columns.starts_with("160000 ") {
                return Err(TreeFault::Submodule(shown(path.as_bytes())).at(self.location));
            }
            let mut names = path.split('/');
            if names.any(|name| NO_NAMES.contains(&&*name.to_ascii_lowercase())) {
                return Err(TreeFault::Name(shown(path.as_bytes())).at(self.location));
            }
        }
        Ok(())
    }

    /// Runs a command to its end and returns its output. The files that it writes meet the limit
    /// together.
    async fn run(&self, arguments: &[&str], limit: NamedLimit) -> Result<String, Error> {
        let path = self.dir.path().join(OUTPUT);
        let output = File::create(&path).map_err(|error| self.failed(&error))?;
        let before = self.stored("");
        let mut process = self.start(arguments, limit.value, output.into())?;
        let status = loop {
            let ended = timeout(MEASURE_INTERVAL, process.0.wait()).await;
            // Also after a failure: at this size the kernel has ended it.
            let written = self.stored("").saturating_sub(before);
            limit.check(written, || {
                format!("git {} of {}", arguments[0], self.location)
            })?;
            if let Ok(ended) = ended {
                break ended.map_err(|error| self.failed(&error))?;
            }
        };
        if status.code() == Some(NOT_FOUND) {
            return Err(TreeFault::NoGit.at(self.location));
        }
        if !status.success() {
            return Err(TreeFault::Git(self.message(status)).at(self.location));
        }
        let output = fs::read(path).map_err(|error| self.failed(&error))?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Starts a command that may write files of about `file_bytes`.
    fn start(
        &self,
        arguments: &[&str],
        file_bytes: u64,
        output: Stdio,
    ) -> Result<GitProcess, Error> {
        let blocks = (file_bytes / 512 + 1).to_string();
        let errors = File::create(self.dir.path().join(ERRORS));
        let errors = errors.map_err(|error| self.failed(&error))?;
        let child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, &blocks, MEMORY_KIB])
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        child.map(GitProcess).map_err(|error| self.failed(&error))
    }

    /// Returns the size of the files in the folder with this end of their name.
    fn stored(&self, end: &str) -> u64 {
        let mut bytes = 0;
        for entry in WalkDir::new(self.dir.path()).into_iter().flatten() {
            if entry.file_name().to_string_lossy().ends_with(end)
                && let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                bytes += metadata.len();
            }
        }
        bytes
    }

    /// Returns the errors that the last command has printed, else its exit status.
    fn message(&self, status: ExitStatus) -> String {
        let mut kept = Vec::new();
        let read = File::open(self.dir.path().join(ERRORS)).and_then(|mut errors| {
            let start = errors.metadata()?.len().saturating_sub(MESSAGE_BYTES);
            errors.seek(SeekFrom::Start(start))?;
            errors.take(MESSAGE_BYTES).read_to_end(&mut kept)
        });
        if !matches!(read, Ok(1..)) {
            return status.to_string();
        }
        let text = String::from_utf8_lossy(&kept);
        let fatal = text.lines().filter_map(|line| line.strip_prefix("fatal: "));
        let fatal: Vec<&str> = fatal.collect();
        if fatal.is_empty() {
            return shown(text.trim_end().as_bytes());
        }
        shown(fatal.join("; ").as_bytes())
    }

    fn failed(&self, error: &io::Error) -> Error {
        TreeFault::Git(error.to_string()).at(self.location)
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        // A process that was waited for has no number any more, and its number may be another's.
        let number = self.0.id().and_then(|number| number.try_into().ok());
        if let Some(group) = number.and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

/// Returns the commit of a name in the output of `git ls-remote`.
fn commit_of<'a>(refs: &'a str, wanted: &str) -> Option<&'a str> {
    for line in refs.lines() {
        if let Some((commit, name)) = line.split_once('\t')
            && name == wanted
        {
            return Some(commit);
        }
    }
    None
}

/// Asks the server as git does. Returns the URL after redirects.
async fn find(session: &WebSession<'_>, location: &GitLocation) -> Result<Url, Error> {
    let mut info = location.url.clone();
    info.set_path(&format!("{}{INFO}", location.url.path()));
    info.set_query(Some("service=git-upload-pack"));
    let mut retries = session.server.retries();
    let asked = retries.run(|| session.send(&info, RequestSpec::default()));
    let response = asked.await?;
    if !response.is_home {
        let to = shown(authority(response.url()).as_bytes());
        return Err(TreeFault::Redirected(to).at(location));
    }
    let media_type = response.headers().get(CONTENT_TYPE);
    let is_git = media_type.is_some_and(|value| value.as_bytes() == ADVERTISEMENT);
    match response.url().path().strip_suffix(INFO) {
        Some(path) if is_git => {
            let mut url = location.url.clone();
            url.set_path(path);
            Ok(url)
        }
        _ => Err(TreeFault::NotGit.at(location)),
    }
}

/// Returns the environment of git. Settings are a part of it, because other users can read a
/// command line with secrets.
fn environment(
    session: &WebSession<'_>,
    proxy: Option<&Url>,
    ca_file: OsString,
) -> Vec<(OsString, OsString)> {
    let minimum = &session.settings.http.min_throughput;
    let seconds = minimum.period.as_secs().max(1);
    let lowest_speed = (minimum.bytes / seconds).to_string();
    let mut options: Vec<(&str, OsString)> = Vec::new();
    for (key, value) in SETTINGS {
        options.push((key, value.into()));
    }
    options.push(("http.userAgent", USER_AGENT.into()));
    options.push(("http.lowSpeedLimit", lowest_speed.into()));
    options.push(("http.lowSpeedTime", seconds.to_string().into()));
    options.push(("http.sslCAInfo", ca_file));
    for (name, value) in &session.authorize(RequestSpec::default()).credentials {
        let field = [name.as_str().as_bytes(), b": ", value.as_bytes()].concat();
        options.push(("http.extraHeader", OsString::from_vec(field)));
    }
    // Nothing else of the environment is passed on: git's own rules for proxies are others.
    if let Some(proxy) = proxy {
        options.push(("http.proxy", proxy.as_str().into()));
    }

    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    if let Some(path) = std::env::var_os("PATH") {
        environment.push(("PATH".into(), path));
    }
    for (name, value) in VARIABLES {
        environment.push((name.into(), value.into()));
    }
    let count = options.len().to_string();
    environment.push(("GIT_CONFIG_COUNT".into(), count.into()));
    for (at, (key, value)) in options.into_iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{at}").into(), value));
    }
    environment
}
