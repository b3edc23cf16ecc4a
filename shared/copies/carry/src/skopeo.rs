//! The program skopeo, which copies the images.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

use source::{FetchSettings, RegistriesConf};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{CarryError, printable};

/// Oldest version that is tested: that of Debian 12.
const VERSION_MIN: (u32, u32) = (1, 9);

/// Folder of settings for signatures, which has none. skopeo would read simple signatures where the
/// settings of the host say that they are, and fail where it may not write them.
const NO_SIGNATURE_SETTINGS: &str = "/var/empty/registries.d";

/// Number of attempts that skopeo repeats after a failure that may pass.
const RETRIES: &str = "3";

/// skopeo with the settings of this program.
pub struct Skopeo {
    program: PathBuf,
    http: FetchSettings,
    auth_file: Option<PathBuf>,
    /// File of mirrors and blocked registries, which counts for this program too.
    registries_conf: Option<PathBuf>,
    /// Folder of the certificates to trust, as skopeo wants them: files that end with `.crt`.
    certificates: Option<TempDir>,
}

impl Skopeo {
    /// Finds the program and checks its version.
    ///
    /// # Errors
    /// A program that is missing or too old, and settings that it cannot have.
    pub async fn find(
        program: PathBuf,
        http: FetchSettings,
        auth_files: &[PathBuf],
        registries_conf: &RegistriesConf,
    ) -> Result<Self, CarryError> {
        if auth_files.len() > 1 {
            let reason = "skopeo reads one credential file: name one --auth-file with the logins of all registries";
            return Err(CarryError::refused(reason));
        }
        let (shown, (major, minor)) = (program.display(), VERSION_MIN);
        let output = match Command::new(&program).arg("--version").output().await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CarryError::Refused(format!(
                    "{shown} is not there: install skopeo {major}.{minor} or newer, or name it with --skopeo PATH"
                )));
            }
            output => output.map_err(CarryError::Run)?,
        };
        let Some(version) = version(&String::from_utf8_lossy(&output.stdout)) else {
            let reason = format!("{shown} does not say the version of skopeo");
            return Err(CarryError::Refused(reason));
        };
        if version < VERSION_MIN {
            let (own_major, own_minor) = version;
            return Err(CarryError::Refused(format!(
                "{shown} is skopeo {own_major}.{own_minor}; {major}.{minor} or newer is needed"
            )));
        }
        Ok(Self {
            program,
            certificates: certificates(&http.ca_files)?,
            http,
            auth_file: auth_files.first().cloned(),
            registries_conf: registries_conf.named_file().map(Path::to_owned),
        })
    }

    /// Returns the words of the command that copies an image with all its platforms, byte for byte,
    /// or an index without its images.
    pub(crate) fn command(&self, from: &str, to: &str, is_sparse: bool) -> Vec<String> {
        let what = match is_sparse {
            true => "--multi-arch index-only",
            false => "--all",
        };
        let options = format!(
            "--registries.d {NO_SIGNATURE_SETTINGS} copy {what} --preserve-digests --quiet --retry-times {RETRIES}"
        );
        let mut words = vec![self.program.display().to_string()];
        if let Some(file) = &self.registries_conf {
            words.extend(["--registries-conf".to_owned(), file.display().to_string()]);
        }
        words.extend(options.split(' ').map(str::to_owned));
        if let Some(file) = &self.auth_file {
            words.extend(["--authfile".to_owned(), file.display().to_string()]);
        }
        for (side, place) in [("src", from), ("dest", to)] {
            let Some(image) = place.strip_prefix("docker://") else {
                continue;
            };
            let host = image.split('/').next().unwrap_or(image);
            if self.http.allows_plain_http(host) {
                words.push(format!("--{side}-tls-verify=false"));
            }
            if let Some(folder) = &self.certificates {
                words.extend([
                    format!("--{side}-cert-dir"),
                    folder.path().display().to_string(),
                ]);
            }
        }
        words.extend([from.to_owned(), to.to_owned()]);
        words
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// The last line that skopeo printed.
    pub(crate) async fn run(&self, words: &[String]) -> Result<(), CarryError> {
        let mut command = Command::new(&self.program);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command.output().await.map_err(CarryError::Run)?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.trim_end().lines().next_back().unwrap_or_default();
        // A line of its log: time="..." level=fatal msg="..."
        let logged = last.split_once("msg=");
        let message = logged.map_or(last, |(_, message)| message.trim_matches('"'));
        let reason = format!("skopeo: {} ({})", printable(message), output.status);
        Err(CarryError::Refused(reason))
    }
}

/// Returns a command as a person may type it into a shell.
pub(crate) fn shown(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,%".contains(c);
    let quoted = words.iter().map(|word| {
        if word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    printable(&quoted.collect::<Vec<_>>().join(" "))
}

/// Returns the first two numbers of `skopeo version 1.9.3`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix("skopeo version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn certificates(files: &[PathBuf]) -> Result<Option<TempDir>, CarryError> {
    if files.is_empty() {
        return Ok(None);
    }
    let folder = tempfile::tempdir().map_err(CarryError::file(std::env::temp_dir()))?;
    for (at, file) in files.iter().enumerate() {
        fs::copy(file, folder.path().join(format!("{at}.crt"))).map_err(CarryError::file(file))?;
    }
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_the_text_of_skopeo() {
        for (text, expected) in [
            ("skopeo version 1.9.3\n", Some((1, 9))),
            ("skopeo version 1.18.0 commit: 1234", Some((1, 18))),
            ("skopeo version 2.0-dev", None),
            ("podman version 4.3.1", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[test]
    fn shown_command_quotes_words_for_a_shell() {
        let words = ["skopeo", "dir:/a b/c'd@sha256:00"].map(str::to_owned);
        assert_eq!(shown(&words), r"skopeo 'dir:/a b/c'\''d@sha256:00'");
    }
}
