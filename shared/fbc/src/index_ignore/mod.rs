mod glob;
mod pattern;

use crate::error::{Error, Problem};
use pattern::{Match, Pattern};

/// The longest line that Go's `bufio.Scanner` takes.
const LINE_LIMIT: usize = 64 * 1024;

/// All `.indexignore` files of a catalog together.
///
/// The rules are those of the Go library that declcfg uses, and not quite git's: a pattern without
/// a slash is compared with every component of a path, later files beat earlier ones, and a file
/// can be included again although its folder is excluded.
#[derive(Clone, Debug, Default)]
pub struct IndexIgnore {
    patterns: Vec<Pattern>,
}

impl IndexIgnore {
    /// The name of the files with patterns, in any folder.
    pub const FILE_NAME: &str = ".indexignore";

    /// Takes the path and contents of every such file of a catalog, in any order.
    ///
    /// # Errors
    /// If a line is longer than 64 KiB.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, Error> {
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_by(|a, b| crate::walk_order(&a.0, &b.0));
        let mut patterns = Vec::new();
        for (path, contents) in &files {
            let folder = path.rsplit_once('/').map(|(folder, _)| folder);
            for (number, line) in contents.split(|byte| *byte == b'\n').enumerate() {
                if line.len() >= LINE_LIMIT {
                    return Err(Error::new(0, Some(number + 1), Problem::Line(LINE_LIMIT - 1)));
                }
                let line = String::from_utf8_lossy(line);
                let line = line.trim();
                if !line.is_empty() && !line.starts_with('#') {
                    patterns.push(Pattern::new(line, folder));
                }
            }
        }
        Ok(Self { patterns })
    }

    /// Whether the file at `path` is no part of the catalog. Files with patterns never are.
    #[must_use]
    pub fn excludes(&self, path: &str) -> bool {
        let path: Vec<_> = path.split('/').collect();
        if path.last() == Some(&Self::FILE_NAME) {
            return true;
        }
        let mut results = self.patterns.iter().rev().map(|pattern| pattern.matches(&path));
        let decided = results.find(|result| *result != Match::None);
        decided == Some(Match::Exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::IndexIgnore;

    /// The files that are left of a small catalog.
    fn left(patterns: &[(&str, &str)]) -> String {
        let files = patterns.iter().map(|(path, lines)| ((*path).into(), (*lines).into()));
        let ignore = IndexIgnore::new(files).expect("no line is too long");
        let paths = [
            "README.md",
            "a.yaml",
            "d/a.yaml",
            "d/e/a.yaml",
            "d/keep.yaml",
            "skip/a.yaml",
        ];
        let left = paths.into_iter().filter(|path| !ignore.excludes(path));
        left.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn patterns_mean_what_the_go_library_makes_of_them() {
        let all = "README.md a.yaml d/a.yaml d/e/a.yaml d/keep.yaml skip/a.yaml";
        let table = [
            ("", all),
            ("*", ""),
            ("# c\n\n  *.md  \nskip/\r\n", "a.yaml d/a.yaml d/e/a.yaml d/keep.yaml"),
            ("a.yaml/", all),
            ("?.yaml", "README.md d/keep.yaml"),
            ("d/*\n!d/keep.yaml", "README.md a.yaml d/keep.yaml skip/a.yaml"),
            ("/a.yaml", "README.md d/a.yaml d/e/a.yaml d/keep.yaml skip/a.yaml"),
            ("**/e/**", "README.md a.yaml d/a.yaml d/keep.yaml skip/a.yaml"),
            ("d**", "README.md a.yaml skip/a.yaml"),
            ("d/**x", all),
            ("[", all),
            ("[^a].yaml", all),
            ("[a-c].yaml", "README.md d/keep.yaml"),
            ("\\a.yaml", "README.md d/keep.yaml"),
        ];
        for (lines, expected) in table {
            assert_eq!(left(&[(".indexignore", lines)]), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_file_of_patterns_rules_its_own_folder() {
        let patterns = [("d/.indexignore", "/a.yaml\n!keep.yaml"), (".indexignore", "keep.yaml")];
        assert_eq!(left(&patterns), "README.md a.yaml d/e/a.yaml d/keep.yaml skip/a.yaml");
        assert!(IndexIgnore::default().excludes("d/.indexignore"));
    }
}
