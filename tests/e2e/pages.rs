//! Checks of all Markdown pages: shell examples run, command lines parse, links lead to files.

use std::{fs, path::PathBuf, process::Command};

use crate::support::binary::{self, Ran, Server};
use crate::support::cargo;

/// A Markdown file of the source tree.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    text: String,
}

/// A fenced block of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) info: String,
    pub(crate) text: String,
}

/// Runs every block that is marked `sh test` against a demo.
#[test]
fn page_examples_run_against_demo() {
    let server = Server::of(binary::command(["demo", "--update-after", "1h"]));
    let mut count = 0;
    for page in pages() {
        for block in page.blocks("sh test") {
            run_block(&block.text, &server.url);
            count += 1;
        }
    }
    // A page that is moved or a marker that is misspelt must not turn this test into one that
    // checks nothing.
    assert!(count >= 4, "only {count} examples were found");
}

/// Checks the subcommands and options of `catalog-mirror`, and the options of our scripts.
#[test]
fn page_command_lines_name_existing_options() {
    let mut count = 0;
    for page in pages() {
        for line in page
            .blocks("sh")
            .iter()
            .flat_map(|block| block.text.lines())
        {
            let place = format!("{}: {line}", page.path.display());
            let words = line.split_whitespace();
            let mut words =
                words.take_while(|word| !["|", ">", "&&", "#", "\\", "<"].contains(word));
            let text = match words
                .find(|word| *word == "catalog-mirror" || word.starts_with("scripts/"))
            {
                Some("catalog-mirror") => match words.next() {
                    Some(command) if !command.starts_with('-') && !command.contains('/') => {
                        Ran::of(&mut binary::command([command, "--help"]))
                            .exits(0)
                            .stdout
                    }
                    // A file or package of that name is not a call.
                    _ => continue,
                },
                // Those that all scripts have are read in common.sh.
                Some(script) => [script, "scripts/lib/common.sh"]
                    .map(|file| fs::read_to_string(cargo::root().join(file)).expect(&place))
                    .concat(),
                None => continue,
            };
            let names = words.filter_map(|word| word.split('=').next());
            for option in names.filter(|name| name.starts_with("--")) {
                assert!(text.contains(option), "{place}: no {option}");
            }
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} command lines were found");
}

#[test]
fn page_links_lead_to_files() {
    for page in pages() {
        for target in page.links() {
            let file = target.split('#').next().unwrap_or_default();
            let path = page
                .path
                .parent()
                .expect("a page lies in a folder")
                .join(file);
            assert!(
                path.exists(),
                "{}: {target} is missing",
                page.path.display()
            );
        }
    }
}

fn run_block(block: &str, url: &str) {
    let script = block.replace("http://127.0.0.1:8080", url);
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]);
    let ran = Ran::of(command.current_dir(cargo::root())).exits(0);
    // A line `# -> text` says that the block prints this text.
    for (_, expected) in block.lines().filter_map(|line| line.split_once("# -> ")) {
        ran.prints(expected.trim());
    }
}

impl Page {
    /// Returns the fenced blocks whose info string starts with `info`. A block in a list is
    /// indented.
    pub(crate) fn blocks(&self, info: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut block: Option<Block> = None;
        let mut fenced = false;
        for line in self.text.lines() {
            if let Some(found) = line.trim_start().strip_prefix("```") {
                blocks.extend(block.take());
                if !fenced && found.starts_with(info) {
                    block = Some(Block {
                        info: found.to_owned(),
                        text: String::new(),
                    });
                }
                fenced = !fenced;
            } else if let Some(block) = &mut block {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
        blocks
    }

    /// Returns the targets of all links to files of this tree.
    fn links(&self) -> impl Iterator<Item = &str> {
        let targets = self.text.split("](").skip(1);
        targets
            .filter_map(|rest| rest.split(')').next())
            .filter(|target| is_file_link(target))
    }
}

/// A version is released with words for its users.
#[test]
fn version_has_section_in_release_notes_and_format_stands_on_support_page() {
    let version = format!("\n## {}\n", env!("CARGO_PKG_VERSION"));
    let notes = fs::read_to_string(cargo::root().join("infra/RELEASES.md")).unwrap();
    let section = notes.split_once(&version).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    assert!(section.contains("**What you must do**"), "{section}");
    let support = fs::read_to_string(cargo::root().join("infra/SUPPORT.md")).unwrap();
    let format = format!("archive of `export` | {} |", model::FORMAT_VERSION);
    assert!(
        support.contains(&format),
        "the support page lacks: {format}"
    );
}

/// A release is fetched under the version that the charts, the pages and the program have.
#[test]
fn charts_and_downloads_have_version_of_program() {
    let version = env!("CARGO_PKG_VERSION");
    for chart in ["mirror", "controller"] {
        let path = cargo::root().join(format!("infra/kubernetes/{chart}/Chart.yaml"));
        let text = fs::read_to_string(path).unwrap();
        for field in ["version", "appVersion"] {
            let line = format!("\n{field}: {version}\n");
            assert!(text.contains(&line), "{chart}: {field} is not {version}");
        }
    }
    let mut count = 0;
    for page in ["README.md", "infra/INSTALL.md"] {
        let text = fs::read_to_string(cargo::root().join(page)).unwrap();
        for download in text.split("/releases/download/v").skip(1) {
            assert!(
                download.starts_with(&format!("{version}/")),
                "{page}: {download:.40}"
            );
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} downloads were found");
}

/// Returns true for a relative path; links in crate READMEs may also name Rust items, such as
/// `Limits::drain`.
fn is_file_link(target: &str) -> bool {
    !target.contains("://")
        && !target.starts_with('#')
        && (target.contains('/') || target.contains('.'))
}

/// Returns all Markdown pages of the source tree.
pub(crate) fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    let mut folders = vec![cargo::root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)
            .expect("the folder is readable")
            .flatten()
        {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("a page is text");
                pages.push(Page { path, text });
            }
        }
    }
    pages
}

#[test]
fn blocks_of_one_kind_are_found_between_others() {
    let text = "```yaml\na: 1\n```\n  ```sh test\none\n  ```\ntext\n```sh\ntwo\n```\n".to_owned();
    let page = Page {
        path: PathBuf::new(),
        text,
    };
    let texts = |info| {
        page.blocks(info)
            .into_iter()
            .map(|block| block.text)
            .collect::<Vec<_>>()
    };
    assert_eq!(texts("sh"), ["one\n", "two\n"]);
    assert_eq!(texts("sh test"), ["one\n"]);
}
