//! The branches and tags of a repository, and the choice of one by its name.

use super::error::GitFault;
use super::packet::{Packet, text};

/// Maximum number of names in an error.
const MAX_LISTED: usize = 20;

/// A branch or tag as a server lists it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GitRef {
    /// Full name, such as `refs/heads/main`.
    name: String,
    /// Name of the commit; of the one that an annotated tag leads to.
    commit: String,
}

impl GitRef {
    /// Parses `HASH NAME [peeled:HASH] [symref-target:NAME]`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (object, name) = (words.next()?, words.next()?);
        let peeled = words.find_map(|word| word.strip_prefix("peeled:"));
        let commit = peeled.unwrap_or(object);
        (is_object_name(object) && is_object_name(commit)).then(|| Self {
            name: name.to_owned(),
            commit: commit.to_owned(),
        })
    }
}

fn is_object_name(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Parses the answer to `ls-refs`.
pub(super) fn parse(packets: &[Packet]) -> Result<Vec<GitRef>, GitFault> {
    let mut refs = Vec::new();
    for packet in packets {
        match packet {
            Packet::Data(line) => {
                let parsed = GitRef::parse(text(line)?);
                refs.push(parsed.ok_or(GitFault::Protocol("a line of its list of branches is malformed"))?);
            }
            Packet::Flush | Packet::Delimiter | Packet::End => {}
        }
    }
    Ok(refs)
}

/// Returns the full names that a name can stand for, in the order of `git rev-parse`.
pub(super) fn candidates(name: &str) -> [String; 4] {
    [
        name.to_owned(),
        format!("refs/{name}"),
        format!("refs/tags/{name}"),
        format!("refs/heads/{name}"),
    ]
}

/// Returns the commit that a name stands for.
pub(super) fn choose(refs: &[GitRef], name: &str) -> Option<String> {
    let find = |full: &String| refs.iter().find(|found| found.name == *full);
    let chosen = candidates(name).iter().find_map(find)?;
    Some(chosen.commit.clone())
}

/// Returns the first names without their folders, for an error.
pub(super) fn listed(refs: &[GitRef]) -> String {
    let short = |found: &GitRef| {
        let name = found.name.as_str();
        let short = name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/"));
        short.unwrap_or(name).to_owned()
    };
    let mut names: Vec<_> = refs.iter().take(MAX_LISTED).map(short).collect();
    if refs.len() > MAX_LISTED {
        names.push(format!("{} more", refs.len() - MAX_LISTED));
    }
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn refs(lines: &[&str]) -> Result<Vec<GitRef>, GitFault> {
        let lines = lines
            .iter()
            .map(|line| Packet::Data(Bytes::copy_from_slice(line.as_bytes())));
        parse(&lines.chain([Packet::Flush]).collect::<Vec<_>>())
    }

    fn line(digit: char, rest: &str) -> String {
        format!("{} {rest}\n", digit.to_string().repeat(40))
    }

    #[test]
    fn choice_follows_order_of_git() {
        let peeled = format!("refs/tags/x peeled:{}", "9".repeat(40));
        let lines = [
            line('1', "HEAD symref-target:refs/heads/main"),
            line('2', "refs/heads/main"),
            line('3', "refs/heads/x"),
            line('4', &peeled),
            line('5', "refs/heads/refs/heads/main"),
            line('6', "refs/heads/tags/x"),
        ];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let refs = refs(&lines).unwrap();
        for (name, want) in [
            ("HEAD", Some('1')),
            ("main", Some('2')),
            ("x", Some('9')),
            ("heads/x", Some('3')),
            ("tags/x", Some('9')),
            ("refs/heads/main", Some('2')),
            ("mai", None),
            ("Main", None),
        ] {
            let chosen = choose(&refs, name);
            assert_eq!(chosen, want.map(|digit| digit.to_string().repeat(40)), "{name}");
        }
        assert_eq!(listed(&refs[1..4]), "main, x, x");
    }

    #[test]
    fn long_list_is_cut() {
        let lines: Vec<_> = (0..23).map(|at| line('1', &format!("refs/heads/b{at}"))).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let text = listed(&refs(&lines).unwrap());
        assert!(text.ends_with("b19, 3 more"), "{text}");
        assert_eq!(listed(&[]), "none");
    }

    #[test]
    fn malformed_lines_are_refused() {
        for bad in [
            "",
            "HEAD",
            "1234 HEAD",
            "unborn HEAD",
            &line('g', "HEAD"),
            &line('1', "HEAD peeled:12"),
            "\u{fffd}",
        ] {
            assert!(refs(&[bad]).is_err(), "{bad}");
        }
        let sha256 = format!("{} HEAD", "1".repeat(64));
        assert!(refs(&[&sha256]).is_err());
    }
}
