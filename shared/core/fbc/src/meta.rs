use std::{borrow::Cow, cmp::Ordering, collections::HashSet};

use crate::canon::{Field, LineBuilder};
use crate::error::{FbcErrorKind, excerpt};

/// Memory of a folded key beside its text, in bytes: its places in the old and the new table while
/// a set grows.
const KEY_BYTES: usize = 100;

/// One FBC document in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Value of `schema`; empty if the document has none.
    pub schema: &'a str,
    /// Value of `package`; empty if the document has none.
    pub package: &'a str,
    /// Value of `name`; empty if the document has none.
    pub name: &'a str,
    /// Canonical JSON, with `\n` at its end.
    pub line: &'a [u8],
    /// Position of the document in its file.
    pub position: DocumentPosition,
}

/// Position of a document in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentPosition {
    /// Number of the document in its file, from 1.
    pub document: usize,
    /// Line on which the document starts, from 1. In YAML this is the line after the separator.
    pub line: usize,
}

impl<'a> Meta<'a> {
    /// Returns the name of the Package; empty if the Meta belongs to the global group.
    ///
    /// ```
    /// use fbc::{DocumentPosition, Meta};
    ///
    /// let position = DocumentPosition::default();
    /// let package = Meta { schema: "olm.package", package: "", name: "db", line: b"{}\n", position };
    /// assert_eq!(package.group(), "db");
    /// let channel = Meta { schema: "olm.channel", ..package };
    /// assert_eq!(channel.group(), "");
    /// ```
    pub fn group(&self) -> &'a str {
        match self.schema {
            "olm.package" if self.package.is_empty() => self.name,
            _ => self.package,
        }
    }
}

/// Finishes the document in `builder` and calls `sink` with it.
pub(crate) fn emit(
    builder: &mut LineBuilder,
    position: DocumentPosition,
    sink: &mut dyn FnMut(Meta<'_>),
) -> Result<(), FbcErrorKind> {
    builder.finish()?;
    // The caller appends the line to others, in a buffer that grows by a quarter.
    let copy = builder.line().len();
    builder.memory().take(copy.saturating_add(copy / 4));
    builder.check_memory()?;
    let unique = check_unique(builder);
    let [mut schema, mut package, mut name] = [const { Cow::Borrowed("") }; 3];
    for at in 0..builder.field_count() {
        let field = builder.field(at);
        match fold(field.key).as_ref() {
            "schema" => schema = string(&field)?,
            "package" => package = string(&field)?,
            "name" => name = string(&field)?,
            _ => {}
        }
    }
    unique?;
    sink(Meta {
        schema: &schema,
        package: &package,
        name: &name,
        line: builder.line(),
        position,
    });
    Ok(())
}

/// Refuses two keys of the outermost object that differ only in case.
// declcfg's decoder matches keys in any case, so it is not clear which of the two would be read.
fn check_unique(builder: &mut LineBuilder) -> Result<(), FbcErrorKind> {
    let mut changed = HashSet::new();
    let mut taken = 0;
    // Keys are unique, so only one that folding changes can be equal to another. Catalogs have few
    // or none.
    for at in 0..builder.field_count() {
        let key = builder.field(at).key;
        let Cow::Owned(folded) = fold(key) else {
            continue;
        };
        if folded == key {
            continue;
        }
        if changed.contains(&folded) {
            return Err(folded_keys(builder, &folded));
        }
        taken += folded.len() + KEY_BYTES;
        builder.memory().take(folded.len() + KEY_BYTES);
        builder.check_memory()?;
        changed.insert(folded);
    }
    builder.memory().give_back(taken);
    let mut fields = 0..if changed.is_empty() {
        0
    } else {
        builder.field_count()
    };
    match fields.find(|at| changed.contains(builder.field(*at).key)) {
        Some(at) => Err(folded_keys(builder, builder.field(at).key)),
        None => Ok(()),
    }
}

fn folded_keys(builder: &LineBuilder, form: &str) -> FbcErrorKind {
    let keys = (0..builder.field_count()).map(|at| builder.field(at).key);
    let mut equal = keys.filter(|key| fold(key) == form).map(excerpt);
    let [first, second] = [equal.next(), equal.next()].map(Option::unwrap_or_default);
    FbcErrorKind::Malformed(format!(
        "the keys {first:?} and {second:?} differ only in case"
    ))
}

/// Returns the key with full Unicode case folding, like `cases.Fold` of golang.org/x/text.
fn fold(key: &str) -> Cow<'_, str> {
    if !key.is_ascii() {
        Cow::Owned(unicase::UniCase::unicode(key).to_folded_case())
    } else if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(key.to_ascii_lowercase())
    } else {
        Cow::Borrowed(key)
    }
}

/// Returns the value of a field that must be a string.
fn string<'a>(field: &Field<'a>) -> Result<Cow<'a, str>, FbcErrorKind> {
    let rest = field.value.strip_prefix(b"\"");
    let inner = rest.and_then(|value| value.strip_suffix(b"\""));
    match inner.map(std::str::from_utf8) {
        // Names rarely have escapes, and without them the canonical text is the value.
        Some(Ok(plain)) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_slice(field.value)
            .map(Cow::Owned)
            .map_err(|_| {
                let key = excerpt(field.key);
                FbcErrorKind::Malformed(format!("the value of {key:?} must be a string"))
            }),
    }
}

/// Compares two paths in the order in which Go's `fs.WalkDir` visits files: component by component,
/// by bytes.
///
/// ```
/// use fbc::walk_order;
///
/// let mut paths = ["foo.yaml", "foo-bar/a", "foo/a"];
/// paths.sort_by(|a, b| walk_order(a, b));
/// assert_eq!(paths, ["foo/a", "foo-bar/a", "foo.yaml"]);
/// ```
pub fn walk_order(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}
