use std::{borrow::Cow, fmt::Display};

use granit_parser::{
    Event, Marker, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag as ParserTag, options,
};
use memchr::memmem;

use crate::{FbcLimits, canon::Container, error::FbcErrorKind};

use super::{error::YamlError, separator};

/// Tags that say more about a scalar than `!!str`, as far as go-yaml knows them.
const TAGS: [&str; 7] = [
    "!!bool",
    "!!int",
    "!!float",
    "!!null",
    "!!timestamp",
    "!!binary",
    "!!merge",
];

/// Scalar as written in the source.
#[derive(Clone, Debug)]
pub(super) struct Scalar<'a> {
    pub(super) value: Cow<'a, str>,
    pub(super) plain: bool,
    /// `!`, `!!str` or one of [`TAGS`]; `None` if it has no tag.
    pub(super) tag: Option<&'static str>,
}

/// Part of a document: an event that matters to the builder.
#[derive(Clone, Debug)]
pub(super) enum YamlPart<'a> {
    Scalar(Scalar<'a>),
    Begin(Container),
    End,
    /// Alias to the anchor with this number.
    Alias(usize),
}

impl YamlPart<'_> {
    /// Returns the memory that reading the part takes beside the text, in bytes.
    pub(super) fn memory(&self) -> usize {
        match self {
            // The digits, the bytes and their text.
            Self::Scalar(scalar) if scalar.tag == Some("!!binary") => {
                scalar.value.len().saturating_mul(4)
            }
            // The parser doubles the memory of a value that it puts together.
            Self::Scalar(Scalar {
                value: Cow::Owned(value),
                ..
            }) => value.capacity().saturating_mul(2),
            _ => 0,
        }
    }
}

/// Reader of the documents in a text, part by part.
pub(super) struct YamlSource<'a> {
    text: &'a str,
    /// True if the text contains U+2028 or U+2029, which are line breaks only in YAML 1.1.
    separators: bool,
    parser: Parser<'a, StrInput<'a>>,
    span: Span,
    /// End of the last scalar, an offset in the text. Comments are between scalars.
    end: usize,
    /// Number of open `[]` and `{}` around the last part.
    flow: usize,
}

impl<'a> YamlSource<'a> {
    pub(super) fn new(text: &'a str, limits: &FbcLimits) -> Self {
        let nesting = limits.depth.saturating_add(1);
        let separators = memmem::find(text.as_bytes(), b"\xE2\x80\xA8").is_some()
            || memmem::find(text.as_bytes(), b"\xE2\x80\xA9").is_some();
        let options = options! {
            emit_anchor_events: true,
            flow_nesting_limit: nesting,
            block_nesting_limit: nesting,
        };
        Self {
            text,
            separators,
            parser: Parser::new_from_str_with_options(text, options),
            span: Span::empty(Marker::new(0, 1, 0)),
            end: 0,
            flow: 0,
        }
    }

    /// Returns the line of the last part. The first line is 1.
    pub(super) fn line(&self) -> usize {
        self.span.start.line()
    }

    /// Moves to the next document. Returns false at the end of the text.
    pub(super) fn document(&mut self) -> Result<bool, YamlError> {
        while let Some(event) = self.event()? {
            if let Event::DocumentStart(_, version) = event {
                return match version {
                    Some(version) if (version.major, version.minor) != (1, 1) => {
                        Err(self.invalid("only YAML 1.1 is known"))
                    }
                    _ => Ok(true),
                };
            }
        }
        Ok(false)
    }

    /// Returns the next part of the document and its anchor (0 if it has none), or `None` at the
    /// end of the document.
    pub(super) fn part(&mut self) -> Result<Option<(YamlPart<'a>, usize)>, YamlError> {
        while let Some(event) = self.event()? {
            return Ok(Some(match event {
                Event::Scalar(value, style, anchor, tag) => {
                    let scalar = Scalar {
                        value: self.check(value, style)?,
                        plain: style == ScalarStyle::Plain,
                        tag: tag.map(|tag| known_tag(&tag)),
                    };
                    (YamlPart::Scalar(scalar), anchor)
                }
                Event::MappingStart(style, anchor, _) => {
                    self.flow += usize::from(self.flow > 0 || style == StructureStyle::Flow);
                    (YamlPart::Begin(Container::Object), anchor)
                }
                Event::SequenceStart(style, anchor, _) => {
                    self.flow += usize::from(self.flow > 0 || style == StructureStyle::Flow);
                    (YamlPart::Begin(Container::Array), anchor)
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    self.flow = self.flow.saturating_sub(1);
                    (YamlPart::End, 0)
                }
                Event::Alias(id) => (YamlPart::Alias(id), 0),
                Event::DocumentEnd => return Ok(None),
                Event::Anchor(_, name) if !is_name(&name) => {
                    return Err(
                        self.invalid("an anchor's name may hold letters, digits, - and _ only")
                    );
                }
                _ => continue,
            }));
        }
        Ok(None)
    }

    pub(super) fn error(&self, kind: FbcErrorKind) -> YamlError {
        YamlError {
            line: Some(self.line()),
            kind,
        }
    }

    /// Refuses or corrects scalars that YAML 1.1 reads differently from the parser.
    #[inline]
    fn check(&self, value: Cow<'a, str>, style: ScalarStyle) -> Result<Cow<'a, str>, YamlError> {
        // In `[]` and `{}`, go-yaml takes every colon at the start of a scalar for that of an empty
        // key.
        let is_colon = self.flow > 0 && value.starts_with(':');
        if style == ScalarStyle::Plain && (is_colon || self.colon_follows()) {
            return Err(self.invalid("white space is needed between a colon and what follows it"));
        }
        if style == ScalarStyle::Plain && self.flow > 0 && value.starts_with('?') {
            return Err(
                self.invalid("white space is needed between a question mark and what follows it")
            );
        }
        if !self.separators {
            return Ok(value);
        }
        let source = match style {
            ScalarStyle::Literal | ScalarStyle::Folded => self.lines(),
            _ => self.span.slice(self.text).unwrap_or_default(),
        };
        if !source.contains(separator::is) {
            return Ok(value);
        }
        match separator::apply(&value, style, source) {
            Some(value) => Ok(value.into()),
            None => Err(self.separated()),
        }
    }

    /// Refuses a comment before a scalar, or before the end of the text, that ends elsewhere in
    /// YAML 1.1. The parser's own events for comments need its feature `comments`, with which it
    /// takes a tenth more time for any text.
    fn check_comments(&mut self, event: &Event<'_>) -> Result<(), YamlError> {
        let range = match event {
            Event::Scalar(..) => self.span.byte_range().unwrap_or_default(),
            Event::StreamEnd => self.text.len()..self.text.len(),
            _ => return Ok(()),
        };
        let between = self.text.get(self.end..range.start).unwrap_or_default();
        self.end = self.end.max(range.end);
        if between.split(separator::BREAK).all(separator::ends_well) {
            return Ok(());
        }
        Err(self.separated())
    }

    fn separated(&self) -> YamlError {
        self.invalid("a line separator cannot stand here")
    }

    fn invalid(&self, problem: &str) -> YamlError {
        self.error(invalid(problem))
    }

    /// Returns the source of the last part, from the start of its first line.
    fn lines(&self) -> &'a str {
        let range = self.span.byte_range().unwrap_or_default();
        let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        &self.text[start..range.end]
    }

    /// Returns true for `a:` in `[a:]`: go-yaml reads the string `a:`, the parser reads an object.
    fn colon_follows(&self) -> bool {
        let source = self.span.byte_range();
        let rest = source.and_then(|range| self.text.as_bytes().get(range.end..));
        matches!(rest, Some([b':', b',' | b'[' | b']' | b'{' | b'}', ..]))
    }

    fn event(&mut self) -> Result<Option<Event<'a>>, YamlError> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.span = span;
                if self.separators {
                    self.check_comments(&event)?;
                }
                Ok(Some(event))
            }
            Some(Err(error)) => Err(YamlError {
                line: Some(error.marker().line()),
                kind: invalid(error.kind()),
            }),
        }
    }
}

fn invalid(problem: impl Display) -> FbcErrorKind {
    FbcErrorKind::Malformed(format!("invalid YAML: {problem}"))
}

fn is_name(anchor: &str) -> bool {
    anchor
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn known_tag(tag: &ParserTag) -> &'static str {
    if tag.original() == "!" {
        return "!";
    }
    let suffix = tag
        .suffix_in_namespace("tag:yaml.org,2002:")
        .unwrap_or_default();
    let known = TAGS.into_iter().find(|known| known[2..] == *suffix);
    known.unwrap_or("!!str")
}
