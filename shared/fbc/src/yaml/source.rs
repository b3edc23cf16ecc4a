use std::borrow::Cow;

use granit_parser::{
    Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle, Tag as YamlTag, options,
};
use memchr::memmem;

use crate::canon::Kind;
use crate::error::Problem;
use crate::limits::Limits;

use super::{Fault, separator};

/// The tags that mean something to go-yaml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    None,
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
    Binary,
    Merge,
    /// The single `!`.
    Bang,
    Other,
}

/// A scalar as it stands in the source.
#[derive(Clone, Debug)]
pub(super) struct Scalar<'a> {
    pub(super) value: Cow<'a, str>,
    pub(super) plain: bool,
    pub(super) tag: Tag,
}

/// A step of a document.
#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    Scalar(Scalar<'a>),
    Begin(Kind),
    End,
    /// A reference to the anchor with this number.
    Alias(usize),
    /// Not in the source: the next value is to be merged into the open object.
    Merge,
}

/// The documents of one piece of text, part by part.
pub(super) struct Source<'a> {
    text: &'a str,
    /// Whether the text holds U+2028 or U+2029, which are line breaks in YAML 1.1 only.
    separators: bool,
    parser: Parser<'a, StrInput<'a>>,
    span: Span,
    /// How deep in `[]` and `{}` the last part is.
    flow: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, limits: &Limits) -> Self {
        let nesting = limits.depth.saturating_add(1);
        let separators = memmem::find(text.as_bytes(), b"\xE2\x80\xA8").is_some()
            || memmem::find(text.as_bytes(), b"\xE2\x80\xA9").is_some();
        let options = options! {
            emit_comments: separators,
            emit_anchor_events: true,
            flow_nesting_limit: nesting,
            block_nesting_limit: nesting,
        };
        Self {
            text,
            separators,
            parser: Parser::new_from_str_with_options(text, options),
            span: Span::empty(Marker::new(0, 1, 0)),
            flow: 0,
        }
    }

    /// The line of the part that was read last; the first is 1.
    pub(super) fn line(&self) -> usize {
        self.span.start.line()
    }

    /// Goes to the next document; false at the end of the text.
    pub(super) fn document(&mut self) -> Result<bool, Fault> {
        while let Some(event) = self.event()? {
            if let Event::DocumentStart(_, version) = event {
                return match version {
                    Some(version) if (version.major, version.minor) != (1, 1) => {
                        Err(self.fault(Problem::Yaml("only YAML 1.1 is known".into())))
                    }
                    _ => Ok(true),
                };
            }
        }
        Ok(false)
    }

    /// The next part of the document and the anchor it carries (0 is none); `None` at its end.
    pub(super) fn part(&mut self) -> Result<Option<(Part<'a>, usize)>, Fault> {
        while let Some(event) = self.event()? {
            return Ok(Some(match event {
                Event::Scalar(value, style, anchor, tag) => {
                    let value = self.check(value, style)?;
                    (scalar(value, style, tag), anchor)
                }
                Event::MappingStart(style, anchor, _) => {
                    self.flow += usize::from(self.flow > 0 || style == StructureStyle::Flow);
                    (Part::Begin(Kind::Object), anchor)
                }
                Event::SequenceStart(style, anchor, _) => {
                    self.flow += usize::from(self.flow > 0 || style == StructureStyle::Flow);
                    (Part::Begin(Kind::Array), anchor)
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    self.flow = self.flow.saturating_sub(1);
                    (Part::End, 0)
                }
                Event::Alias(id) => (Part::Alias(id), 0),
                Event::DocumentEnd => return Ok(None),
                Event::Anchor(_, name) if !is_name(&name) => {
                    let what = "an anchor's name may hold letters, digits, - and _ only";
                    return Err(self.fault(Problem::Yaml(what.into())));
                }
                _ => continue,
            }));
        }
        Ok(None)
    }

    pub(super) fn fault(&self, problem: Problem) -> Fault {
        Fault {
            line: Some(self.line()),
            problem,
        }
    }

    /// Looks for what YAML 1.1 reads differently from the parser.
    #[inline]
    fn check(&self, value: Cow<'a, str>, style: ScalarStyle) -> Result<Cow<'a, str>, Fault> {
        if style == ScalarStyle::Plain && self.colon_follows() {
            let what = "white space is needed between a colon and what follows it";
            return Err(self.fault(Problem::Yaml(what.into())));
        }
        if style == ScalarStyle::Plain && self.flow > 0 && value.starts_with('?') {
            let what = "white space is needed between a question mark and what follows it";
            return Err(self.fault(Problem::Yaml(what.into())));
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

    fn separated(&self) -> Fault {
        self.fault(Problem::Yaml("a line separator cannot stand here".into()))
    }

    /// The source of the last part, from the start of its first line on.
    fn lines(&self) -> &'a str {
        let range = self.span.byte_range().unwrap_or_default();
        let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        &self.text[start..range.end]
    }

    /// `[a:]` is a list with the string `a:` for go-yaml, and with an object for the parser.
    fn colon_follows(&self) -> bool {
        let rest = self
            .span
            .byte_range()
            .and_then(|range| self.text.as_bytes().get(range.end..));
        matches!(rest, Some([b':', b',' | b'[' | b']' | b'{' | b'}', ..]))
    }

    fn event(&mut self) -> Result<Option<Event<'a>>, Fault> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.span = span;
                match &event {
                    Event::Comment(text, _) if !separator::ends_well(text) => Err(self.separated()),
                    _ => Ok(Some(event)),
                }
            }
            Some(Err(error)) => Err(fault(&error)),
        }
    }
}

fn is_name(anchor: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    anchor.bytes().all(alphanumeric)
}

fn fault(error: &ScanError) -> Fault {
    Fault {
        line: Some(error.marker().line()),
        problem: Problem::Yaml(error.kind().to_string()),
    }
}

fn scalar<'a>(value: Cow<'a, str>, style: ScalarStyle, tag: Option<Cow<'a, YamlTag>>) -> Part<'a> {
    Part::Scalar(Scalar {
        value,
        plain: style == ScalarStyle::Plain,
        tag: tag.map_or(Tag::None, |tag| self::tag(&tag)),
    })
}

fn tag(tag: &YamlTag) -> Tag {
    if tag.original() == "!" {
        return Tag::Bang;
    }
    match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
        Some("str") => Tag::Str,
        Some("bool") => Tag::Bool,
        Some("int") => Tag::Int,
        Some("float") => Tag::Float,
        Some("null") => Tag::Null,
        Some("timestamp") => Tag::Timestamp,
        Some("binary") => Tag::Binary,
        Some("merge") => Tag::Merge,
        _ => Tag::Other,
    }
}
