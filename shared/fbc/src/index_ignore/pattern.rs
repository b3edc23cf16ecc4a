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
    /// Any other text; `None` if it is malformed.
    Glob(Option<Glob>),
}

impl Part {
    fn new(part: &str) -> Self {
        match part {
            "" => Self::Empty,
            "**" => Self::Folders,
            _ if part.contains("**") => Self::Mixed(Glob::new(part)),
            _ => Self::Glob(Glob::new(part)),
        }
    }
}

impl Pattern {
    pub(super) fn new(line: &str) -> Self {
        let name = line.strip_prefix('!').unwrap_or(line);
        let name = name.strip_suffix('/').unwrap_or(name);
        Self {
            parts: name.split('/').map(Part::new).collect(),
            include: line.starts_with('!'),
            folders_only: line.ends_with('/'),
        }
    }

    /// Compares the pattern with the path of a file, relative to the folder of the pattern. Returns true if it excludes the file,
    /// false if it includes it, and `None` if it does not match.
    pub(super) fn excludes(&self, path: &[&str], steps: &mut u64) -> Option<bool> {
        let matched = match &*self.parts {
            [part] => self.matches_name(part, path, steps),
            parts => self.matches_path(parts, path, steps),
        };
        matched.then_some(!self.include)
    }

    /// Compares a pattern without slashes with every component of the path.
    fn matches_name(&self, part: &Part, path: &[&str], steps: &mut u64) -> bool {
        let glob = match part {
            Part::Glob(Some(glob)) | Part::Mixed(Some(glob)) => glob,
            // In a pattern without slashes `**` is two stars, which match every name.
            Part::Folders => return !self.folders_only || path.len() > 1,
            Part::Empty => return path.iter().any(|name| name.is_empty()),
            Part::Glob(None) | Part::Mixed(None) => return false,
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
                Part::Glob(Some(glob)) if !path.is_empty() => glob,
                Part::Glob(_) | Part::Mixed(_) => return false,
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

/// Element of a pattern, which matches a part of a name.
#[derive(Debug)]
enum GlobToken {
    /// `*`: any number of characters, also none.
    Many,
    /// `?`: any one character except the end.
    Any,
    One(char),
    /// `[..]` or `[^..]`: one character inside or outside the ranges.
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl GlobToken {
    fn takes(&self, c: char, steps: &mut u64) -> bool {
        match self {
            Self::Many => false,
            Self::Any => true,
            Self::One(one) => *one == c,
            Self::Class { negated, ranges } => {
                *steps += ranges.len() as u64;
                let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                inside != *negated
            }
        }
    }
}

/// Pattern of one path component, ready to be compared.
#[derive(Debug)]
pub(super) struct Glob(Vec<GlobToken>);

impl Glob {
    /// Reads a pattern. Returns `None` if it is malformed.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' => GlobToken::Many,
                '?' => GlobToken::Any,
                '[' => class(&mut rest)?,
                '\\' => GlobToken::One(rest.next()?),
                _ => GlobToken::One(c),
            });
        }
        Some(Self(tokens))
    }

    /// Returns true if `name` matches. Adds one to `steps` for each token or range that is compared.
    pub(super) fn matches(&self, name: &str, steps: &mut u64) -> bool {
        let (mut token, mut rest) = (0, name.chars());
        // Backtracking to the last `*` is enough, so the work is at most the product of the two lengths: earlier `*` never
        // need to take more.
        let mut retry = None;
        loop {
            *steps += 1;
            match self.0.get(token) {
                None if rest.as_str().is_empty() => return true,
                Some(GlobToken::Many) => {
                    retry = Some((token, rest.clone()));
                    token += 1;
                    continue;
                }
                Some(one) => {
                    let mut after = rest.clone();
                    if after.next().is_some_and(|c| one.takes(c, steps)) {
                        token += 1;
                        rest = after;
                        continue;
                    }
                }
                None => {}
            }
            let Some((many, taken)) = &mut retry else {
                return false;
            };
            if taken.next().is_none() {
                return false;
            }
            (token, rest) = (*many + 1, taken.clone());
        }
    }
}

fn class(rest: &mut std::str::Chars<'_>) -> Option<GlobToken> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        // As in Go, a class holds at least one range, so a `]` right after the opening bracket is malformed.
        if !ranges.is_empty() && rest.as_str().starts_with(']') {
            rest.next();
            return Some(GlobToken::Class { negated, ranges });
        }
        let low = bound(rest)?;
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = bound(rest)?;
        }
        ranges.push((low, high));
    }
}

fn bound(rest: &mut std::str::Chars<'_>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        c => Some(c),
    }
}
