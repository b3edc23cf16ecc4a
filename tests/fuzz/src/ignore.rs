use arbitrary::{Arbitrary, Result, Unstructured};
use fbc::{FbcError, IndexIgnore};
use work::{Budget, MemoryPool};

use crate::memory;

/// Maximum number of components of a path, and of repetitions of a part of a pattern.
const DEEP: usize = 500;

/// Maximum size of a path and of an ignore file, in bytes. A path is compared with all patterns of
/// a file before the steps are checked.
const PATH_BYTES: usize = 4 << 10;
const FILE_BYTES: usize = 8 << 10;
/// Number of steps after which an input is given up: a second without optimisation.
const STEPS: u64 = 20_000_000;

/// Memory for each byte of the ignore files: a pattern of one character takes two bytes there, and
/// up to 400 in lists that grow in steps.
const RATIO: usize = 200;

/// Files with patterns, and paths that are compared with them.
#[derive(Debug, Default)]
struct Tree {
    files: Vec<(String, Vec<u8>)>,
    paths: Vec<String>,
}

/// Compares paths, also deep ones, with `.indexignore` files: memory and steps are bounded by the
/// sizes, and the order of the files does not matter.
///
/// # Panics
/// If not.
pub(crate) fn indexignore(input: &[u8]) {
    let Ok(tree) = tree(&mut Unstructured::new(input)) else {
        return;
    };
    let bytes: usize = tree
        .files
        .iter()
        .map(|(path, lines)| path.len() + lines.len() + 1)
        .sum();
    let budget = Budget::new(STEPS, MemoryPool::default());
    let ignore = memory::within(RATIO * bytes + (4 << 10), "patterns", || {
        patterns(tree.files.iter())
    });
    // The only other error is a line of 64 KiB.
    let Ok(ignore) = ignore else { return };
    let reversed = patterns(tree.files.iter().rev()).expect("it was accepted in another order");
    for path in &tree.paths {
        let before = budget.used();
        let excluded = memory::within(32 * path.len() + 1024, path, || {
            ignore.excludes(path, &budget)
        });
        let steps = (budget.used() - before) as usize;
        let most = 4 * (bytes + 1) * (path.len() + 1);
        assert!(
            steps <= most,
            "{steps} steps, more than {most}: {path} in {tree:?}"
        );
        let Ok(excluded) = excluded else {
            assert!(budget.used() > STEPS, "{path} in {tree:?}");
            return;
        };
        assert_eq!(
            reversed.excludes(path, &Budget::default()).ok(),
            Some(excluded),
            "{path} in {tree:?}"
        );
    }
}

fn patterns<'a>(
    files: impl Iterator<Item = &'a (String, Vec<u8>)>,
) -> std::result::Result<IndexIgnore, FbcError> {
    let mut ignore = IndexIgnore::default();
    for (path, lines) in files {
        ignore.add(path, lines, usize::MAX)?;
    }
    Ok(ignore)
}

fn tree(choices: &mut Unstructured<'_>) -> Result<Tree> {
    let mut tree = Tree::default();
    for _ in 0..choices.int_in_range(1..=3)? {
        let mut folder = if choices.ratio(1, 3)? {
            path(choices)? + "/"
        } else {
            String::new()
        };
        folder.push_str(IndexIgnore::FILE_NAME);
        if tree.files.iter().any(|(other, _)| *other == folder) {
            continue;
        }
        let mut lines = String::new();
        while !choices.is_empty() && choices.ratio(5, 6)? {
            let line = line(choices)?;
            let times = times(choices)?;
            if lines.len() + line.len() * times <= FILE_BYTES {
                lines.push_str(&line.repeat(times));
            }
        }
        tree.files.push((folder, lines.into_bytes()));
    }
    for _ in 0..choices.int_in_range(1..=4)? {
        tree.paths.push(path(choices)?);
    }
    Ok(tree)
}

/// Returns how often a part is repeated: mostly once.
fn times(choices: &mut Unstructured<'_>) -> Result<usize> {
    let most = if choices.ratio(1, 8)? { DEEP } else { 1 };
    choices.int_in_range(1..=most)
}

fn path(choices: &mut Unstructured<'_>) -> Result<String> {
    const NAMES: [&str; 8] = [
        "a",
        "b",
        "ab",
        "aab",
        "aaaaaaaaaaaaaaaab",
        "é",
        "*",
        ".indexignore",
    ];
    let mut parts = Vec::new();
    for _ in 0..choices.int_in_range(1..=4)? {
        let name = *choices.choose(&NAMES)?;
        let times = times(choices)?;
        parts.extend(std::iter::repeat_n(name, times));
    }
    let path = parts.join("/");
    let path = &path[..path.floor_char_boundary(PATH_BYTES)];
    Ok(path.trim_end_matches('/').to_owned())
}

fn line(choices: &mut Unstructured<'_>) -> Result<String> {
    const PARTS: [&str; 14] = [
        "a", "b", "*", "?", "*a", "a*b", "/", "/", "**", "**/", "[a-c]", "[^b]", "\\a", "[",
    ];
    let mut line = String::new();
    if choices.ratio(1, 6)? {
        line.push_str(choices.choose(&["!", "#", "/", " "])?);
    }
    for _ in 0..choices.int_in_range(1..=5)? {
        let part = *choices.choose(&PARTS)?;
        let times = times(choices)?;
        line.push_str(&part.repeat(times));
    }
    line.push_str(if bool::arbitrary(choices)? {
        "\n"
    } else {
        "/\n"
    });
    Ok(line)
}
