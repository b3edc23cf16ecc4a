use super::glob::Glob;

/// Result of comparing a pattern with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternMatch {
    None,
    Exclude,
    Include,
}

/// Pattern from one line of an `.indexignore` file.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Components of the pattern, separated by slashes in the file.
    parts: Vec<Part>,
    include: bool,
    folders_only: bool,
}

/// One component of a pattern.
#[derive(Debug)]
enum Part {
    /// Nothing, as before a slash at the start.
    Empty,
    /// `**`: any number of folders.
    Folders,
    /// `**` beside other characters, which matches nothing in a pattern with slashes; `None` if it is malformed.
    Mixed(Option<Glob>),
    Glob(Glob),
    Malformed,
}

impl Part {
    fn new(part: &str) -> Self {
        match part {
            "" => Self::Empty,
            "**" => Self::Folders,
            _ if part.contains("**") => Self::Mixed(Glob::new(part)),
            _ => Glob::new(part).map_or(Self::Malformed, Self::Glob),
        }
    }
}

impl Pattern {
    pub(super) fn new(line: &str) -> Self {
        let (include, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        Self {
            parts: line.split('/').map(Part::new).collect(),
            include,
            folders_only,
        }
    }

    /// Compares the pattern with the path of a file, relative to the folder of the pattern.
    pub(super) fn matches(&self, path: &[&str], steps: &mut u64) -> PatternMatch {
        let matched = match &*self.parts {
            [part] => self.matches_name(part, path, steps),
            parts => self.matches_path(parts, path, steps),
        };
        match (matched, self.include) {
            (false, _) => PatternMatch::None,
            (true, false) => PatternMatch::Exclude,
            (true, true) => PatternMatch::Include,
        }
    }

    /// Compares a pattern without slashes with every component of the path.
    fn matches_name(&self, part: &Part, path: &[&str], steps: &mut u64) -> bool {
        let glob = match part {
            Part::Glob(glob) | Part::Mixed(Some(glob)) => glob,
            // In a pattern without slashes `**` is two stars, which match every name.
            Part::Folders => return !self.folders_only || path.len() > 1,
            Part::Empty => return path.iter().any(|name| name.is_empty()),
            Part::Mixed(None) | Part::Malformed => return false,
        };
        // The first component that matches decides, even if it is the file itself and the pattern means folders.
        let matched = path.iter().position(|name| glob.matches(name, steps));
        matched.is_some_and(|at| !self.folders_only || at + 1 < path.len())
    }

    /// Compares a pattern with slashes with the path, component by component.
    fn matches_path(&self, parts: &[Part], mut path: &[&str], steps: &mut u64) -> bool {
        let mut matched = false;
        let mut skip = false;
        for (at, part) in parts.iter().enumerate() {
            *steps += 1;
            let glob = match part {
                Part::Empty => {
                    skip = false;
                    continue;
                }
                // A final `**` needs something before it that matched; the Go library treats it so, git does not.
                Part::Folders if at + 1 == parts.len() => break,
                Part::Folders => {
                    skip = true;
                    continue;
                }
                Part::Glob(glob) if !path.is_empty() => glob,
                Part::Glob(_) | Part::Mixed(_) | Part::Malformed => return false,
            };
            let Some(found) = advance(glob, &mut path, skip, steps) else {
                return false;
            };
            matched = found;
            skip = false;
        }
        matched && !(self.folders_only && path.is_empty())
    }
}

/// Removes the components from `path` that `glob` matches: the first one, or, after `**`, all up to one that matches.
/// Returns `None` if the whole pattern cannot match.
fn advance(glob: &Glob, path: &mut &[&str], skip: bool, steps: &mut u64) -> Option<bool> {
    while let Some((name, rest)) = path.split_first() {
        *path = rest;
        let matched = glob.matches(name, steps);
        if matched || !skip {
            return matched.then_some(true);
        }
    }
    Some(false)
}
