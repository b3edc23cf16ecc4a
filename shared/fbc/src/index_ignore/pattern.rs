use super::glob;

/// What a pattern says about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    None,
    Exclude,
    Include,
}

/// One line of an `.indexignore` file.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The components of the folder that the pattern is valid in.
    folder: Vec<String>,
    /// The components of the pattern.
    parts: Vec<String>,
    include: bool,
    folders_only: bool,
}

impl Pattern {
    pub(super) fn new(line: &str, folder: Option<&str>) -> Self {
        let (include, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let parts = |path: &str| path.split('/').map(Into::into).collect();
        Self {
            folder: folder.map(parts).unwrap_or_default(),
            parts: parts(line),
            include,
            folders_only,
        }
    }

    /// Compares the pattern with the path of a file.
    pub(super) fn matches(&self, path: &[&str]) -> Match {
        let Some((folder, rest)) = path.split_at_checked(self.folder.len()) else {
            return Match::None;
        };
        if folder != self.folder {
            return Match::None;
        }
        let matched = match &*self.parts {
            [part] => self.matches_name(part, rest),
            parts => self.matches_path(parts, rest),
        };
        match (matched, self.include) {
            (false, _) => Match::None,
            (true, false) => Match::Exclude,
            (true, true) => Match::Include,
        }
    }

    /// A pattern without slashes fits any component.
    fn matches_name(&self, part: &str, path: &[&str]) -> bool {
        for (at, name) in path.iter().enumerate() {
            match glob::matches(part, name) {
                None => return false,
                Some(true) => return !self.folders_only || at + 1 < path.len(),
                Some(false) => {}
            }
        }
        false
    }

    fn matches_path(&self, parts: &[String], mut path: &[&str]) -> bool {
        let mut matched = false;
        let mut skip = false;
        for (at, part) in parts.iter().enumerate() {
            match part.as_str() {
                "" => {
                    skip = false;
                    continue;
                }
                "**" if at + 1 == parts.len() => break,
                "**" => {
                    skip = true;
                    continue;
                }
                _ if part.contains("**") || path.is_empty() => return false,
                _ => {}
            }
            let Some(found) = advance(part, &mut path, skip) else {
                return false;
            };
            matched = found;
            skip = false;
        }
        matched && !(self.folders_only && path.is_empty())
    }
}

/// Takes the components off `path` that `part` is good for: the first, or, after `**`, all up to
/// one that matches. `None` means that the whole pattern does not match.
fn advance(part: &str, path: &mut &[&str], skip: bool) -> Option<bool> {
    while let Some((name, rest)) = path.split_first() {
        *path = rest;
        let matched = glob::matches(part, name)?;
        if matched || !skip {
            return matched.then_some(true);
        }
    }
    Some(false)
}
