use serde::Deserialize;
use serde_json::Value;
use yaml_serde::{Deserializer, Value as Yaml};

use crate::fbc::{checked_lines, close};

/// The longest input that libyaml is asked about: it takes quadratic time on some.
const MAX: usize = 8 << 10;

/// A YAML file, beside libyaml: what both accept has to be the same, but for what YAML 1.1 and 1.2 see differently.
///
/// # Panics
/// If it is not.
pub fn yaml(input: &[u8]) {
    if input.trim_ascii_start().starts_with(b"{") {
        return;
    }
    let ours = checked_lines(input, "\n---\n");
    if let (Some(ours), Some(theirs)) = (ours, documents(input)) {
        assert_eq!(ours.len(), theirs.len(), "{ours:?} instead of {theirs:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(agree(ours, theirs), "{ours} instead of {theirs:?}");
        }
    }
}

/// What libyaml reads. Of tags, and of byte order marks that are not the first thing in a file, each library has its own
/// idea; and Kubernetes takes `---#` for a separator.
fn documents(input: &[u8]) -> Option<Vec<Yaml>> {
    let has = |text: &str| contains(input, text.as_bytes());
    if input.len() > MAX || has("!") || has("---#") || contains(input.get(1..)?, "\u{feff}".as_bytes()) {
        return None;
    }
    let input = lines(input);
    let values = Deserializer::from_slice(&input).map(Yaml::deserialize);
    let values: Vec<Yaml> = values.collect::<Result<_, _>>().ok()?;
    Some(values.into_iter().filter(|value| *value != Yaml::Null).collect())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|bytes| bytes == part)
}

/// Kubernetes cuts a file into lines before it is parsed: each ends with a line feed then, the last one too, and has lost
/// one carriage return before the one that it had.
fn lines(input: &[u8]) -> Vec<u8> {
    let lines = input.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| [bare(line), b"\n"].concat()).collect()
}

fn bare(line: &[u8]) -> &[u8] {
    match line {
        [bare @ .., b'\r', b'\n'] | [bare @ .., b'\n'] | bare => bare,
    }
}

fn agree(ours: &Value, theirs: &Yaml) -> bool {
    match (ours, theirs) {
        (Value::Null, Yaml::Null) => true,
        (Value::Bool(a), Yaml::Bool(b)) => a == b,
        (Value::Number(a), Yaml::Number(b)) => close(a.as_f64(), b.as_f64()),
        (Value::String(a), Yaml::String(b)) => a == b,
        // What no float64 can hold is a string to go-yaml.
        (Value::String(a), Yaml::Number(b)) => is_older(a) && b.is_infinite(),
        (ours, Yaml::String(text)) => is_older(text) && !ours.is_array() && !ours.is_object(),
        (Value::Array(a), Yaml::Sequence(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b)),
        (Value::Object(a), Yaml::Mapping(b)) => {
            let fields: Option<Vec<_>> = b.iter().map(|(key, value)| Some((plain(key)?, value))).collect();
            // A key that is no string, or a merge, is spelled in our own way.
            fields.is_none_or(|fields| {
                let same = |(key, b): (&str, &Yaml)| a.get(key).is_some_and(|a| agree(a, b));
                fields.len() == a.len() && fields.into_iter().all(same)
            })
        }
        _ => false,
    }
}

/// A key that is a string to everybody.
fn plain(key: &Yaml) -> Option<&str> {
    key.as_str().filter(|key| !is_older(key) && *key != "<<")
}

/// A plain scalar that means something in YAML 1.1 only: a boolean, or a number with underscores or leading zeros.
fn is_older(text: &str) -> bool {
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off"
    );
    word || text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
}
