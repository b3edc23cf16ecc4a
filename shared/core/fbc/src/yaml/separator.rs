//! Handles U+2028 and U+2029: line breaks in YAML 1.1, ordinary characters for the parser.

use granit_parser::ScalarStyle;

/// Returns true for U+2028 and U+2029.
pub(super) fn is(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns the value of a scalar with line separators as YAML 1.1 defines it, or `None` if YAML 1.1
/// would not read it as one scalar.
pub(super) fn apply(value: &str, style: ScalarStyle, source: &str) -> Option<String> {
    if count(value) != count(source) {
        // Some separators of the value are escapes in the source. Those are not line breaks.
        return None;
    }
    match style {
        ScalarStyle::DoubleQuoted if source.contains('\\') => None,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if beside_break(source) => None,
        // White space around a line break is not part of the value.
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => join(value, |before, after| {
            Some((
                before.trim_end_matches(BLANK),
                after.trim_start_matches(BLANK),
            ))
        }),
        // YAML 1.1 counts a separator among the breaks at the end of the value, and among those of
        // an empty line.
        ScalarStyle::Literal | ScalarStyle::Folded if ends_a_line(value) => None,
        ScalarStyle::Literal | ScalarStyle::Folded => {
            let indent = indent(value, source)?;
            join(value, |before, after| {
                let spaces = spaces(after);
                let fits = spaces >= indent || after.is_empty() || after.starts_with('\n');
                fits.then(|| (before, &after[indent.min(spaces)..]))
            })
        }
        ScalarStyle::Plain => None,
    }
}

/// Returns true if the comment on this line, if there is one, ends at the same place in YAML 1.1.
/// There a line separator ends the comment, so that only white space or another comment may follow
/// it.
pub(super) fn ends_well(line: &str) -> bool {
    let mut others = line
        .split(is)
        .skip(1)
        .map(|line| line.trim_start_matches(BLANK));
    others.all(|line| line.is_empty() || line.starts_with('#'))
}

/// Returns true if a line break is next to a separator.
fn beside_break(source: &str) -> bool {
    let mut parts = source.split(is).map(|part| part.trim_matches(BLANK));
    parts.any(|part| part.is_empty() || part.starts_with(BREAK) || part.ends_with(BREAK))
}

/// Returns true if only white space stands between a separator and a line break, or the start or
/// the end of the value.
fn ends_a_line(value: &str) -> bool {
    let mut after = value
        .split(is)
        .skip(1)
        .map(|part| part.trim_start_matches(BLANK));
    let mut before = value
        .rsplit(is)
        .skip(1)
        .map(|part| part.trim_end_matches(BLANK));
    after.any(|part| part.is_empty() || part.starts_with(BREAK))
        || before.any(|part| part.is_empty() || part.ends_with(BREAK))
}

const BLANK: [char; 2] = [' ', '\t'];
pub(super) const BREAK: [char; 2] = ['\n', '\r'];

fn spaces(line: &str) -> usize {
    line.bytes().take_while(|byte| *byte == b' ').count()
}

/// Returns the indentation of a block scalar: the spaces that the source has more than the value.
fn indent(value: &str, source: &str) -> Option<usize> {
    let written = first_filled_line(source)?;
    let read = first_filled_line(value)?;
    spaces(written).checked_sub(spaces(read))
}

fn first_filled_line(text: &str) -> Option<&str> {
    text.lines()
        .find(|line| !line.trim_matches(BLANK).is_empty())
}

/// Returns the number of separators in a text.
fn count(text: &str) -> usize {
    text.chars().filter(|c| is(*c)).count()
}

/// Lets `edge` shorten the text before and after every separator.
fn join<'v>(
    value: &'v str,
    mut edge: impl FnMut(&'v str, &'v str) -> Option<(&'v str, &'v str)>,
) -> Option<String> {
    let mut joined = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find(is) {
        let (before, from) = rest.split_at(at);
        let mut chars = from.chars();
        let separator = chars.next()?;
        let (before, after) = edge(before, chars.as_str())?;
        joined.push_str(before);
        joined.push(separator);
        rest = after;
    }
    joined.push_str(rest);
    Some(joined)
}
