//! Values of the lines that are checked, and how many of them are held.

use std::borrow::Cow;

use serde::de;

use super::shape::Fields;

/// Number of values that may be decoded of lines of any length: some 20,000 channel entries. They
/// take at most 19 MB.
const VALUES_MIN: usize = 1 << 17;

/// Number of bytes of a line for each value above [`VALUES_MIN`]. A value takes 48 bytes, and three
/// times as much while a list grows, so the values of a line never take more than six times its
/// bytes.
const BYTES_PER_VALUE: usize = 24;

/// A decoded value. What has the wrong type is [`Value::Absent`].
#[derive(Debug, Clone, Default)]
pub(crate) enum Value<'a> {
    #[default]
    Absent,
    /// A value that is there but holds no content of interest.
    Present,
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
    List(Vec<Value<'a>>),
    /// The fields of the shape, in its order; empty if none of them has a value.
    Object(Fields, Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// Returns the field, or [`Value::Absent`].
    pub(crate) fn field(&self, name: &str) -> &Self {
        let Self::Object(fields, values) = self else {
            return &Self::Absent;
        };
        let at = fields.iter().position(|field| field.name == name);
        at.and_then(|at| values.get(at)).unwrap_or(&Self::Absent)
    }

    /// Returns the text of the field; empty if it has none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.field(name).as_text()
    }

    /// Returns the text; empty if the value is none.
    pub(crate) fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// Returns the elements of the list in the field; none if it has no list.
    pub(crate) fn list(&self, name: &str) -> &[Value<'a>] {
        match self.field(name) {
            Self::List(list) => list,
            _ => &[],
        }
    }

    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Number of values that may still be decoded. Values that are only checked do not count, because
/// they are not kept.
#[derive(Debug)]
pub(crate) struct ValueBudget {
    left: usize,
    pub(crate) is_exceeded: bool,
}

impl ValueBudget {
    /// Returns the budget for lines of this total length that are held at a time.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            left: VALUES_MIN.max(bytes / BYTES_PER_VALUE),
            is_exceeded: false,
        }
    }

    /// Takes the values that are kept.
    pub(crate) fn take<E: de::Error>(&mut self, values: usize) -> Result<(), E> {
        match self.left.checked_sub(values) {
            Some(left) => self.left = left,
            None => {
                self.is_exceeded = true;
                return Err(E::custom("too many values"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_takes_as_many_bytes_as_the_budget_assumes() {
        assert!(size_of::<Value<'_>>() <= 48);
    }
}
