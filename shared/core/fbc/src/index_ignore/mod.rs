mod pattern;

use std::collections::BTreeMap;

use work::{Budget, OverBudget};

use crate::error::{FbcError, FbcErrorKind};
use pattern::Pattern;

/// Shortest line that Go's `bufio.Scanner` refuses, in bytes (`bufio.MaxScanTokenSize`).
const LINE_LIMIT: usize = 64 * 1024;

/// Patterns of all `.indexignore` files of a catalog.
///
/// The rules are those of the Go library that declcfg uses. They differ from git's: a pattern
/// without a slash is compared with every component of a path, later files beat earlier ones, and a
/// file can be included again although its folder is excluded.
///
/// ```
/// use fbc::IndexIgnore;
/// use work::Budget;
///
/// let mut ignore = IndexIgnore::default();
/// ignore.add(".indexignore", b"*.md\n", 1000)?;
/// assert!(ignore.excludes("db/README.md", &Budget::default())?);
/// assert!(!ignore.excludes("db/catalog.yaml", &Budget::default())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct IndexIgnore {
    /// Patterns by the components of the path of their file. That is the order of the walk in which
    /// the Go library reads the files.
    files: BTreeMap<Vec<String>, Vec<Pattern>>,
    /// Number of patterns in all files.
    count: usize,
}

impl IndexIgnore {
    /// Name of the files that hold patterns, in any folder.
    pub const FILE_NAME: &str = ".indexignore";

    /// Adds the patterns of the `.indexignore` file at `path`. The files may come in any order, and
    /// have at most `limit` patterns together.
    ///
    /// # Errors
    /// Fails if a line is longer than 64 KiB, or if there are too many patterns.
    pub fn add(&mut self, path: &str, contents: &[u8], limit: usize) -> Result<(), FbcError> {
        let mut patterns = Vec::new();
        for (line, number) in contents.split(|byte| *byte == b'\n').zip(1..) {
            let error = |kind| FbcError::new(0, Some(number), kind);
            if line.len() >= LINE_LIMIT {
                let problem = format!("more than {} bytes in a line", LINE_LIMIT - 1);
                return Err(error(FbcErrorKind::Malformed(problem)));
            }
            // As in Go, a pattern that is not UTF-8 is not an error.
            let line = String::from_utf8_lossy(line);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if self.count == limit {
                return Err(error(FbcErrorKind::limit("ignorePatterns", limit)));
            }
            self.count += 1;
            patterns.push(Pattern::new(line));
        }
        let parts = path.split('/').map(str::to_owned);
        self.files.insert(parts.collect(), patterns);
        Ok(())
    }

    /// Returns true if the file at `path` is not part of the catalog. This includes every
    /// `.indexignore` file.
    ///
    /// A step is the comparison of a character or folder with a pattern.
    ///
    /// # Errors
    /// Fails if `budget` has too few steps, or if its work is stopped.
    pub fn excludes(&self, path: &str, budget: &Budget) -> Result<bool, OverBudget> {
        let path: Vec<_> = path.split('/').collect();
        if path.last() == Some(&Self::FILE_NAME) {
            return Ok(true);
        }
        // Later files beat earlier ones, and the last pattern that matches decides.
        for (file, patterns) in self.files.iter().rev() {
            let folder = &file[..file.len() - 1];
            let mut steps = 1 + folder.len() as u64;
            let decided = match path.split_at_checked(folder.len()) {
                Some((above, rest)) if above == folder => {
                    let mut patterns = patterns.iter().rev();
                    patterns.find_map(|pattern| pattern.excludes(rest, &mut steps))
                }
                _ => None,
            };
            budget.charge(steps)?;
            if let Some(excludes) = decided {
                return Ok(excludes);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use work::{Budget, MemoryPool, OverBudget};

    use super::IndexIgnore;

    const FILES: &str =
        "README.md a.yaml d/a.yaml d/e/a.yaml d/keep.yaml skip/a.yaml d/.indexignore";

    /// Returns the files that the patterns do not exclude.
    fn left(patterns: &[(&str, &str)]) -> String {
        let mut ignore = IndexIgnore::default();
        for (path, lines) in patterns {
            ignore
                .add(path, lines.as_bytes(), 1000)
                .expect("no line is too long");
        }
        let is_left = |path: &&str| !ignore.excludes(path, &Budget::default()).unwrap();
        FILES
            .split(' ')
            .filter(is_left)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn patterns_match_like_the_go_library() {
        let (all, _) = FILES.rsplit_once(' ').unwrap();
        let table = [
            ("", all),
            ("*", ""),
            (
                "# c\n\n  *.md  \nskip/\r\n",
                "a.yaml d/a.yaml d/e/a.yaml d/keep.yaml",
            ),
            ("a.yaml/", all),
            ("?.yaml", "README.md d/keep.yaml"),
            // A star takes as much as the rest of the pattern needs.
            (
                "*e*p*a*l",
                "README.md a.yaml d/a.yaml d/e/a.yaml skip/a.yaml",
            ),
            (
                "?*?.yaml",
                "README.md a.yaml d/a.yaml d/e/a.yaml skip/a.yaml",
            ),
            ("*.yam", all),
            ("readme.md", all),
            ("e/a.yaml", all),
            (
                "d/*/?.yaml",
                "README.md a.yaml d/a.yaml d/keep.yaml skip/a.yaml",
            ),
            (
                "d/*\n!d/keep.yaml",
                "README.md a.yaml d/keep.yaml skip/a.yaml",
            ),
            (
                "/a.yaml",
                "README.md d/a.yaml d/e/a.yaml d/keep.yaml skip/a.yaml",
            ),
            (
                "**/e/**",
                "README.md a.yaml d/a.yaml d/keep.yaml skip/a.yaml",
            ),
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
    fn patterns_apply_only_to_the_folder_of_their_file() {
        let patterns = [
            ("d/.indexignore", "/a.yaml\n!keep.yaml"),
            (".indexignore", "keep.yaml"),
        ];
        assert_eq!(
            left(&patterns),
            "README.md a.yaml d/e/a.yaml d/keep.yaml skip/a.yaml"
        );
    }

    fn limited(lines: &str, patterns: usize) -> Result<IndexIgnore, String> {
        let mut ignore = IndexIgnore::default();
        let added = ignore.add(".indexignore", lines.as_bytes(), patterns);
        added.map_err(|error| format!("{error}: {}", error.kind))?;
        Ok(ignore)
    }

    #[test]
    fn limits_accept_their_exact_value_and_name_themselves_when_exceeded() {
        let error = limited("a\n# c\nb\n", 1).unwrap_err();
        assert_eq!(error, "line 3: exceeds the limit ignorePatterns of 1");
        let ignore = limited("a\n# c\nb\n", 2).unwrap();
        let budget = Budget::default();
        assert!(!ignore.excludes("c/d", &budget).unwrap());
        let within = |steps| ignore.excludes("c/d", &Budget::new(steps, MemoryPool::default()));
        assert!(!within(budget.used()).unwrap());
        let error = within(budget.used() - 1).unwrap_err();
        assert_eq!(error, OverBudget::Steps(budget.used() - 1));
    }

    #[test]
    fn steps_grow_with_the_product_of_patterns_and_paths() {
        // Each is four times as long as the one before, in the patterns or in the path.
        type Make = fn(usize) -> (String, String);
        let families: [(&str, Make); 5] = [
            ("many patterns", |n| ("x*y\n".repeat(n), "xa/xb".into())),
            ("long path", |n| ("x*y\n".into(), "xa/".repeat(n) + "b")),
            ("deep pattern", |n| {
                ("a/".repeat(n) + "b", "a/".repeat(n) + "c")
            }),
            ("stars", |n| ("*a".repeat(n) + "b", "a".repeat(200))),
            ("folders", |n| {
                ("**/".repeat(n) + "a/**/b", "x/".repeat(n) + "c")
            }),
        ];
        for (name, make) in families {
            let cost = |n| {
                let (lines, path) = make(n);
                let budget = Budget::default();
                limited(&lines, usize::MAX)
                    .unwrap()
                    .excludes(&path, &budget)
                    .unwrap();
                budget.used()
            };
            for n in [500, 2000] {
                let (before, now) = (cost(n), cost(4 * n));
                assert!(now * 10 <= before * 44, "{name}: {before} and {now}");
            }
        }
    }
}
