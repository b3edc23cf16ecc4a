//! git(1) with no other settings than those given here.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;
use std::time::Duration;

use fetch::{Fetcher, Proxy, RequestSpec, authority};
use oci::{BlobRef, LimitExceeded, shown};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use walkdir::WalkDir;

use super::GitFault;
use crate::blob_source::NamedLimit;
use crate::download::give_back;
use crate::error::Error;
use crate::location::GitLocation;
use crate::settings::SourceSettings;
use crate::web::{SizeLimit, WebSession};

/// Path below the repository's URL that answers with what the server can.
const INFO: &str = "/info/refs";

/// Branch that a source without a reference means.
const DEFAULT_BRANCH: &str = "HEAD";

/// Variables of this process that git gets: the path and the proxies. Nothing else of the environment is passed on.
const PASSED: [&str; 8] = [
    "PATH",
    "HTTPS_PROXY",
    "https_proxy",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// Settings that do not depend on the source.
const SETTINGS: [&str; 9] = [
    // A redirect would take the credentials along.
    "http.followRedirects=false",
    "core.hooksPath=/dev/null",
    "fetch.recurseSubmodules=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "protocol.version=2",
    // Larger files are streamed and not held in memory.
    "core.bigFileThreshold=1m",
    // Each thread would hold objects of its own.
    "pack.threads=1",
    // One pack, and no file for each object.
    "fetch.unpackLimit=1",
];

/// Memory of one process of git, in bytes. Files are streamed, but an object that is stored as a delta is held with its base.
const MEMORY_BYTES: u64 = 1 << 30;

/// Interval between two measurements of the pack that arrives.
const MEASURE_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum length of an error of git that is kept, in bytes.
const MESSAGE_BYTES: usize = 4096;

/// Maximum number of branches and tags that an error lists.
const MAX_LISTED: usize = 20;

/// An empty repository in a temporary folder, and one on a server.
pub(super) struct GitProgram<'a> {
    pub(super) settings: &'a SourceSettings,
    pub(super) location: &'a GitLocation,
    /// URL of the repository after redirects on its server.
    url: Url,
    dir: TempDir,
    /// Settings without secrets, for the command line.
    options: Vec<String>,
    environment: Vec<(OsString, OsString)>,
}

/// A fetched pack.
pub(super) struct GitPack {
    /// Size of the pack. Its digest is that of the revision.
    pub(super) blob: BlobRef,
    _space: OwnedSemaphorePermit,
}

/// A running command. When dropped, it is killed with all processes that it has started.
pub(super) struct GitProcess {
    pub(super) child: Child,
    message: Option<JoinHandle<String>>,
}

impl<'a> GitProgram<'a> {
    /// Asks the server for the repository, and makes an empty one beside it.
    pub(super) async fn open(
        fetcher: &Fetcher,
        session: &WebSession,
        settings: &'a SourceSettings,
        location: &'a GitLocation,
    ) -> Result<Self, Error> {
        let url = find(session, location).await?;
        let temporary = std::env::temp_dir();
        let dir = TempDir::with_prefix_in("catalog-mirror-", &temporary).map_err(|source| Error::Write {
            path: temporary,
            source,
        })?;
        let minimum = &settings.http.min_throughput;
        let seconds = minimum.period.as_secs().max(1);
        let mut options: Vec<_> = SETTINGS.iter().map(ToString::to_string).collect();
        options.push(format!("http.userAgent={}", settings.http.user_agent));
        options.push(format!("http.lowSpeedLimit={}", minimum.bytes / seconds));
        options.push(format!("http.lowSpeedTime={seconds}"));
        if url.scheme() == "https" {
            let path = dir.path().join("ca.pem");
            let written = fetcher.ca_bundle().and_then(|bundle| fs::write(&path, bundle));
            options.push(format!("http.sslCAInfo={}", path.display()));
            written.map_err(|source| Error::Write { path, source })?;
        }
        let program = Self {
            settings,
            location,
            environment: environment(session, settings, &url, &dir),
            url,
            dir,
            options,
        };
        program
            .output(&["init", "--quiet", "--bare", "--template=", "."])
            .await?;
        Ok(program)
    }

    /// Returns the commit that the source means now.
    pub(super) async fn resolve(&self) -> Result<String, Error> {
        let name = self.location.reference().unwrap_or(DEFAULT_BRANCH);
        // As git resolves a name. The commit of an annotated tag has the tag's name with ^{}.
        let full = ["", "refs/", "refs/tags/", "refs/heads/"].map(|prefix| format!("{prefix}{name}"));
        let names: Vec<_> = full
            .into_iter()
            .flat_map(|full| [format!("{full}^{{}}"), full])
            .collect();
        let url = self.url.as_str();
        let found = self.output(&["ls-remote", url, name, &format!("{name}^{{}}")]).await?;
        let refs: Vec<_> = found.lines().filter_map(|line| line.split_once('\t')).collect();
        let chosen = names.iter().find_map(|full| refs.iter().find(|(_, name)| name == full));
        if let Some((commit, _)) = chosen {
            return Ok((*commit).to_owned());
        }
        // Only for the message, so a failure changes nothing.
        let all = self.output(&["ls-remote", "--refs", "--heads", "--tags", url]).await;
        let found = all.map_or_else(|_| "too many to list".to_owned(), |all| listed(&all));
        Err(self.location.error(GitFault::NoRef {
            name: shown(name.as_bytes()),
            found: shown(found.as_bytes()),
        }))
    }

    /// Fetches the trees and files of one commit, without its history. A filter would not spare the files of other folders:
    /// servers refuse one by path.
    pub(super) async fn fetch(&self, commit: &str) -> Result<GitPack, Error> {
        let place = || format!("the pack of {}", self.location);
        let max = SizeLimit::of(self.settings);
        let mut space = self.settings.download_space.take(max.bytes, place).await?;
        // The commit is passed by a pipe, so that nothing is fetched before the limits of the process are set.
        let arguments = [
            "fetch",
            "--quiet",
            "--stdin",
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
        ];
        let mut process = self.start(&[&arguments[..], &[self.url.as_str()]].concat(), max.bytes)?;
        if let Some(mut input) = process.child.stdin.take() {
            // A process that ends before it has read says why.
            input.write_all(commit.as_bytes()).await.ok();
        }
        let mut ended = Box::pin(process.end());
        let ended = loop {
            tokio::select! {
                ended = &mut ended => break ended,
                () = sleep(MEASURE_INTERVAL) => max.check(self.stored(""), &place())?,
            }
        };
        // Also after a failure: at this size the kernel has ended it.
        max.check(self.stored(""), &place())?;
        ended.map_err(|fault| self.location.error(fault))?;
        give_back(&mut space, self.stored(""));
        Ok(GitPack {
            blob: BlobRef {
                digest: self.location.revision(commit),
                size: self.stored(".pack"),
            },
            _space: space,
        })
    }

    /// Returns the size of the files of the repository's objects with this end of their name.
    fn stored(&self, end: &str) -> u64 {
        let files = WalkDir::new(self.dir.path().join("objects")).into_iter().flatten();
        let files =
            files.filter(|file| file.file_type().is_file() && file.file_name().to_string_lossy().ends_with(end));
        files
            .filter_map(|file| file.metadata().ok())
            .map(|file| file.len())
            .sum()
    }

    /// Runs a command to its end and returns what it has printed.
    async fn output(&self, arguments: &[&str]) -> Result<String, Error> {
        let NamedLimit { name, bytes: limit } = NamedLimit::manifest(&self.settings.limits);
        let mut process = self.start(arguments, limit)?;
        let mut text = Vec::new();
        if let Some(output) = process.child.stdout.take() {
            let read = output.take(limit.saturating_add(1)).read_to_end(&mut text).await;
            read.map_err(|error| self.location.error(GitFault::Failed(error.to_string())))?;
        }
        if text.len() as u64 > limit {
            let place = format!("the list of branches of {}", self.location);
            return Err(Error::Limit(LimitExceeded { name, limit, place }));
        }
        process.end().await.map_err(|fault| self.location.error(fault))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts a command that may write files of at most `file_bytes`.
    pub(super) fn start(&self, arguments: &[&str], file_bytes: u64) -> Result<GitProcess, Error> {
        let options = self.options.iter().flat_map(|option| ["-c", option]);
        let started = Command::new("git")
            .args(options.chain(arguments.iter().copied()))
            .env_clear()
            .envs(self.environment.iter().cloned())
            .current_dir(self.dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child = started.map_err(|error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            self.location.error(if is_missing {
                GitFault::NoProgram
            } else {
                GitFault::Failed(error.to_string())
            })
        })?;
        limit(&child, file_bytes.saturating_add(1));
        let message = child.stderr.take().map(|stderr| tokio::spawn(last_lines(stderr)));
        Ok(GitProcess { child, message })
    }
}

impl GitProcess {
    /// Waits for the end of the command.
    pub(super) async fn end(mut self) -> Result<(), GitFault> {
        let failed = |error: std::io::Error| GitFault::Failed(error.to_string());
        let status = self.child.wait().await.map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        let message = match self.message.take() {
            Some(message) => message.await.unwrap_or_default(),
            None => String::new(),
        };
        // Such as a signal.
        let message = if message.is_empty() {
            status.to_string()
        } else {
            message
        };
        Err(GitFault::Failed(shown(message.as_bytes())))
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        // A process that was waited for has no number any more, and its number may be another's.
        if let Some(group) = pid(&self.child) {
            kill_process_group(group, Signal::KILL).ok();
        }
    }
}

/// Asks the server as git does. Returns the URL after redirects.
async fn find(session: &WebSession, location: &GitLocation) -> Result<Url, Error> {
    let mut info = location.url().clone();
    info.set_path(&format!("{}{INFO}", info.path()));
    info.set_query(Some("service=git-upload-pack"));
    let response = session
        .with_retries(|| session.send(&info, RequestSpec::default()))
        .await?;
    if !response.is_home {
        let to = shown(authority(response.url()).as_bytes());
        return Err(location.error(GitFault::Redirected(to)));
    }
    let media_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let path = response.url().path().strip_suffix(INFO);
    match path.filter(|_| media_type == Some(b"application/x-git-upload-pack-advertisement")) {
        Some(path) => {
            let mut url = location.url().clone();
            url.set_path(path);
            Ok(url)
        }
        None => Err(location.error(GitFault::NotGit)),
    }
}

/// Returns the environment of git. Secrets are in settings here, because other users can read a command line.
fn environment(session: &WebSession, settings: &SourceSettings, url: &Url, dir: &TempDir) -> Vec<(OsString, OsString)> {
    let dir = dir.path().as_os_str();
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("GIT_DIR".into(), dir.into()),
        ("HOME".into(), dir.into()),
        ("LC_ALL".into(), "C".into()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
        ("GIT_TERMINAL_PROMPT".into(), "0".into()),
        ("GIT_ASKPASS".into(), "".into()),
        ("GIT_ALLOW_PROTOCOL".into(), url.scheme().into()),
        ("GIT_LITERAL_PATHSPECS".into(), "1".into()),
        ("GIT_NO_REPLACE_OBJECTS".into(), "1".into()),
    ];
    let passed = |name: &&str| !matches!(settings.http.proxy, Proxy::Off) || *name == "PATH";
    for name in PASSED.into_iter().filter(passed) {
        environment.extend(std::env::var_os(name).map(|value| (name.into(), value)));
    }
    let fields = session.credential_fields();
    let field = |(name, value): (&HeaderName, &HeaderValue)| {
        let value = [name.as_str().as_bytes(), b": ", value.as_bytes()].concat();
        ("http.extraHeader", OsString::from_vec(value))
    };
    let mut secrets: Vec<_> = fields.iter().map(field).collect();
    if let Proxy::Url(proxy) = &settings.http.proxy {
        secrets.push(("http.proxy", proxy.into()));
    }
    for (at, (key, value)) in secrets.iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
    }
    environment.push(("GIT_CONFIG_COUNT".into(), secrets.len().to_string().into()));
    environment
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id()?.try_into().ok()?)
}

/// Limits a process and those that it starts from now on. Other systems than Linux have only the measurements of the folder.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "there is no prlimit"))]
fn limit(child: &Child, file_bytes: u64) {
    #[cfg(target_os = "linux")]
    for (resource, most) in [
        (rustix::process::Resource::Fsize, file_bytes),
        (rustix::process::Resource::Data, MEMORY_BYTES),
    ] {
        let most = rustix::process::Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        if let Some(pid) = pid(child) {
            // A process that has ended needs none.
            rustix::process::prlimit(Some(pid), resource, most).ok();
        }
    }
}

/// Reads to the end and returns the last lines that are errors, without their prefix.
async fn last_lines(mut stderr: tokio::process::ChildStderr) -> String {
    let (mut kept, mut chunk) = (Vec::new(), [0; 1024]);
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count]);
        let surplus = kept.len().saturating_sub(MESSAGE_BYTES);
        kept.drain(..surplus);
    }
    let text = String::from_utf8_lossy(&kept).into_owned();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("fatal: ")).collect();
    if lines.is_empty() {
        text.trim_end().to_owned()
    } else {
        lines.join("; ")
    }
}

/// Returns the names of branches and tags for an error.
fn listed(refs: &str) -> String {
    let names = refs.lines().filter_map(|line| line.split_once('\t'));
    let short = |name: &str| {
        let short = name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/"));
        short.unwrap_or(name).to_owned()
    };
    let mut names: Vec<_> = names.map(|(_, name)| short(name)).collect();
    let more = names.len().saturating_sub(MAX_LISTED);
    names.truncate(MAX_LISTED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}
