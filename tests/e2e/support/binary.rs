use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::block_in_place;

use super::cargo;

/// Maximum time for one step of a test. More means that the binary hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Builds the `catalog-mirror` binary once and returns its path. Cargo gives a test only the
/// binaries of its own package. `CATALOG_MIRROR_TEST_BINARY` names another one, to see a test fail
/// with an earlier version.
pub(crate) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if let Some(path) = std::env::var_os("CATALOG_MIRROR_TEST_BINARY") {
            return path.into();
        }
        // The examples make cargo count the features that tests add. Without them, this build would
        // compile a hundred libraries again with fewer features than `cargo test --workspace` gave
        // them.
        let selection = "build --quiet --locked --workspace --bin catalog-mirror --examples --message-format=json";
        let messages = cargo::said(cargo::command().args(selection.split(' ')));
        let messages = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut executables = messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
        let binary = executables.find(|path| path.ends_with("catalog-mirror"));
        binary.expect("the build names the binary")
    })
}

/// Returns a command of the binary without the variables of the user's environment that change its
/// behaviour.
pub(crate) fn command<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(path());
    let names = "CATALOG_MIRROR_STORE CATALOG_MIRROR_CONFIG CATALOG_MIRROR_LISTEN REGISTRY_AUTH_FILE RUST_LOG";
    for name in names.split(' ') {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Runs a command to its end. A test with several threads serves it meanwhile.
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = block_in_place(|| command.output()).expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Runs a command that must end within a time. Else its exit code is that of `timeout`, 124.
    pub(crate) fn within(time: Duration, command: &Command) -> Self {
        let mut limited = Command::new("timeout");
        limited
            .arg(time.as_secs().to_string())
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::null());
        if let Some(folder) = command.get_current_dir() {
            limited.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        Self::of(&mut limited)
    }

    /// Asserts the exit code and returns what was printed.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that the errors contain a text.
    #[track_caller]
    pub(crate) fn complains(&self, part: &str) {
        assert!(self.stderr.contains(part), "{part}: {self:#?}");
    }

    /// Asserts that the standard output contains a text.
    #[track_caller]
    pub(crate) fn prints(&self, part: &str) {
        assert!(self.stdout.contains(part), "{part}: {self:#?}");
    }

    /// Returns the standard output, which is JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A running `serve` or `demo`; it is killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    lines: mpsc::Receiver<String>,
    /// The lines that no wait has asked for yet. Lines of standard output and of standard error
    /// come in either order.
    passed: RefCell<Vec<String>>,
}

impl Server {
    /// Starts a command of the binary with `--listen 127.0.0.1:0`, and waits until it says where it
    /// listens.
    pub(crate) fn of(mut command: Command) -> Self {
        command.args(["--listen", "127.0.0.1:0", "--log-format", "text", "-v"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let (sender, lines) = mpsc::channel();
        forward(
            child.stdout.take().expect("stdout is piped"),
            sender.clone(),
        );
        forward(child.stderr.take().expect("stderr is piped"), sender);
        let mut server = Self {
            child,
            url: String::new(),
            lines,
            passed: RefCell::default(),
        };
        server.url = server.wait_for(|line| {
            let at = line.find("127.0.0.1:")?;
            let mut address =
                line[at..].split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
            Some(format!("http://{}", address.next()?))
        });
        server
    }

    /// Waits for a line of output with this text, and returns it.
    pub(crate) fn says(&self, part: &str) -> String {
        self.wait_for(|line| line.contains(part).then(|| line.to_owned()))
    }

    /// Waits for a line of output that `find` accepts, and takes it out. The lines before it stay
    /// for the next wait.
    pub(crate) fn wait_for<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        let mut passed = self.passed.borrow_mut();
        let earlier = passed.iter().enumerate();
        if let Some((at, found)) = earlier
            .filter_map(|(at, line)| Some((at, find(line)?)))
            .next()
        {
            passed.remove(at);
            return found;
        }
        let deadline = Instant::now() + PATIENCE;
        block_in_place(|| {
            loop {
                let patience = deadline.saturating_duration_since(Instant::now());
                let Ok(line) = self.lines.recv_timeout(patience) else {
                    panic!("the server does not say what the test waits for, but: {passed:#?}");
                };
                if let Some(found) = find(&line) {
                    return found;
                }
                passed.push(line);
            }
        })
    }

    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let killed = Command::new("kill").arg(self.id().to_string()).status();
        assert!(killed.expect("kill can be run").success());
        let status = block_in_place(|| self.child.wait()).expect("the server can be waited for");
        status.code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has usually ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn forward(stream: impl std::io::Read + Send + 'static, lines: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
}
