//! Matches one path component by the rules of Go's `filepath.Match`.

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
        tokens(pattern).map(Self)
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

fn tokens(pattern: &str) -> Option<Vec<GlobToken>> {
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
    Some(tokens)
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
