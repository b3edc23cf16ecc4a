use std::{iter::Peekable, str::Chars};

/// Pattern from one line of an `.indexignore` file.
#[derive(Debug)]
pub(super) struct Pattern {
    /// Components of the pattern, which match components of a path one after the other.
    steps: Vec<PathStep>,
    include: bool,
    folders_only: bool,
}

/// Component of a pattern.
#[derive(Debug)]
struct PathStep {
    /// True after `**`, and in a pattern without slashes: any number of folders may stand before
    /// the component that matches.
    skips: bool,
    /// `None` if no component matches: the text is malformed, or has `**` beside other characters.
    glob: Option<Glob>,
}

impl Pattern {
    pub(super) fn new(line: &str) -> Self {
        let text = line.strip_prefix('!').unwrap_or(line);
        let text = text.strip_suffix('/').unwrap_or(text);
        Self {
            steps: path_steps(text),
            include: line.starts_with('!'),
            folders_only: line.ends_with('/'),
        }
    }

    /// Compares the pattern with the path of a file, relative to the folder of the pattern. Returns
    /// true if it excludes the file, false if it includes it, and `None` if it does not match.
    pub(super) fn excludes(&self, path: &[&str], steps: &mut u64) -> Option<bool> {
        let mut rest = path;
        let matched = self.steps.iter().all(|step| step.advance(&mut rest, steps));
        // The first component that matches decides, even if it is the file itself and the pattern
        // means folders.
        let matched = matched && !self.steps.is_empty() && !(self.folders_only && rest.is_empty());
        matched.then_some(!self.include)
    }
}

/// Reads a pattern. A final `**` matches nothing by itself; the Go library treats it so, git does
/// not.
fn path_steps(text: &str) -> Vec<PathStep> {
    // Without slashes, `**` is two stars, which match every name.
    let is_name = !text.contains('/');
    let mut steps = Vec::new();
    let mut skips = is_name;
    for part in text.split('/') {
        match part {
            "" => skips = false,
            "**" if !is_name => skips = true,
            _ => {
                let glob = Glob::new(part).filter(|_| is_name || !part.contains("**"));
                steps.push(PathStep { skips, glob });
                skips = false;
            }
        }
    }
    steps
}

impl PathStep {
    /// Removes the components from `path` up to the one that matches. Returns false if none does.
    fn advance(&self, path: &mut &[&str], steps: &mut u64) -> bool {
        *steps += 1;
        let Some(glob) = &self.glob else { return false };
        while let Some((name, rest)) = path.split_first() {
            *path = rest;
            let matched = glob.matches(name, steps);
            if matched || !self.skips {
                return matched;
            }
        }
        false
    }
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
        let mut rest = pattern.chars().peekable();
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

    /// Returns true if `name` matches. Adds one to `steps` for each token or range that is
    /// compared.
    pub(super) fn matches(&self, name: &str, steps: &mut u64) -> bool {
        let mut token = 0;
        let mut rest = name.chars();
        // Backtracking to the last `*` is enough, so the work is at most the product of the two
        // lengths: earlier `*` never need to take more.
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
            token = *many + 1;
            rest = taken.clone();
        }
    }
}

fn class(rest: &mut Peekable<Chars<'_>>) -> Option<GlobToken> {
    let negated = rest.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    loop {
        // As in Go, a class holds at least one range, so a `]` right after the opening bracket is
        // malformed.
        if !ranges.is_empty() && rest.next_if_eq(&']').is_some() {
            return Some(GlobToken::Class { negated, ranges });
        }
        let low = bound(rest)?;
        let high = match rest.next_if_eq(&'-') {
            Some(_) => bound(rest)?,
            None => low,
        };
        ranges.push((low, high));
    }
}

fn bound(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        c => Some(c),
    }
}
