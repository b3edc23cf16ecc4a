//! Go's `filepath.Match` for one path component.

/// A step of a pattern.
#[derive(Debug)]
enum Token {
    /// `*`
    Many,
    /// `?`
    Any,
    One(char),
    /// `[..]` or `[^..]`
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Many => false,
            Self::Any => true,
            Self::One(one) => *one == c,
            Self::Class { negated, ranges } => {
                let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                inside != *negated
            }
        }
    }
}

/// Whether `name` fits `pattern`; `None` if the pattern is malformed.
pub(super) fn matches(pattern: &str, name: &str) -> Option<bool> {
    let tokens = tokens(pattern)?;
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    // Where to go on if this way fails: after the last `*`, which then takes one more character.
    let mut retry = None;
    loop {
        match tokens.get(token) {
            None if at == name.len() => return Some(true),
            Some(Token::Many) => {
                retry = Some((token, at));
                token += 1;
                continue;
            }
            Some(one) if name.get(at).is_some_and(|c| one.takes(*c)) => {
                token += 1;
                at += 1;
                continue;
            }
            _ => {}
        }
        match &mut retry {
            Some((many, taken)) if *taken < name.len() => {
                *taken += 1;
                (token, at) = (*many + 1, *taken);
            }
            _ => return Some(false),
        }
    }
}

fn tokens(pattern: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '*' => Token::Many,
            '?' => Token::Any,
            '[' => class(&mut rest)?,
            '\\' => Token::One(rest.next()?),
            _ => Token::One(c),
        });
    }
    Some(tokens)
}

fn class(rest: &mut std::str::Chars<'_>) -> Option<Token> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && rest.as_str().starts_with(']') {
            rest.next();
            return Some(Token::Class { negated, ranges });
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
