use std::borrow::Cow;

use crate::canon::{Canon, Field};
use crate::error::Problem;

/// One FBC document in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Its `schema`, empty if it has none.
    pub schema: &'a str,
    /// Its `package`, empty if it has none.
    pub package: &'a str,
    /// Its `name`, empty if it has none.
    pub name: &'a str,
    /// The canonical line, with `\n` at its end.
    pub line: &'a [u8],
}

impl<'a> Meta<'a> {
    /// The Package that it belongs to; `None` is the global group.
    #[must_use]
    pub fn group(&self) -> Option<&'a str> {
        let package = match self.schema {
            "olm.package" if self.package.is_empty() => self.name,
            _ => self.package,
        };
        (!package.is_empty()).then_some(package)
    }
}

/// Finishes the document in `canon` and hands it on.
pub(crate) fn emit(canon: &mut Canon, sink: &mut dyn FnMut(Meta<'_>)) -> Result<(), Problem> {
    canon.finish();
    let [mut schema, mut package, mut name] = [const { Cow::Borrowed("") }; 3];
    let mut folded: Vec<(Cow<'_, str>, &str)> = Vec::new();
    for field in canon.fields() {
        let fold = fold(field.key);
        match fold.as_ref() {
            "schema" => schema = string(&field)?,
            "package" => package = string(&field)?,
            "name" => name = string(&field)?,
            _ => {}
        }
        folded.push((fold, field.key));
    }
    unique(folded)?;
    sink(Meta {
        schema: &schema,
        package: &package,
        name: &name,
        line: canon.line(),
    });
    Ok(())
}

/// A key as it is compared: full Unicode case folding, as `cases.Fold` of golang.org/x/text.
fn fold(key: &str) -> Cow<'_, str> {
    if !key.is_ascii() {
        Cow::Owned(unicase::UniCase::unicode(key).to_folded_case())
    } else if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(key.to_ascii_lowercase())
    } else {
        Cow::Borrowed(key)
    }
}

fn unique(mut folded: Vec<(Cow<'_, str>, &str)>) -> Result<(), Problem> {
    folded.sort_unstable();
    for pair in folded.windows(2) {
        if pair[0].0 == pair[1].0 {
            return Err(Problem::FoldedKeys(pair[0].1.into(), pair[1].1.into()));
        }
    }
    Ok(())
}

fn string<'a>(field: &Field<'a>) -> Result<Cow<'a, str>, Problem> {
    let inner = field
        .value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""));
    match inner.map(std::str::from_utf8) {
        Some(Ok(plain)) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_slice(field.value)
            .map(Cow::Owned)
            .map_err(|_| Problem::NotAString(field.key.into())),
    }
}
