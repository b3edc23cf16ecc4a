use std::borrow::Cow;

/// Filters of a `metas` query, as catalogd reads them: the first value of a parameter wins, an empty value is no filter, and
/// all filters have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Query {
    pub(crate) schema: String,
    pub(crate) package: String,
    pub(crate) name: String,
}

impl Query {
    /// Reads the query component of a URL.
    ///
    /// # Errors
    /// The name of the first parameter that is unknown.
    pub(crate) fn parse(query: &str) -> Result<Self, String> {
        let (mut schema, mut package, mut name) = (None, None, None);
        for (key, value) in pairs(query) {
            let slot = match form_decode(key).as_ref() {
                "schema" => &mut schema,
                "package" => &mut package,
                "name" => &mut name,
                unknown => return Err(unknown.to_owned()),
            };
            slot.get_or_insert_with(|| form_decode(value).into_owned());
        }
        Ok(Self {
            schema: schema.unwrap_or_default(),
            package: package.unwrap_or_default(),
            name: name.unwrap_or_default(),
        })
    }

    /// True if the query asks for the whole catalog.
    pub(crate) fn is_empty(&self) -> bool {
        self.schema.is_empty() && self.package.is_empty() && self.name.is_empty()
    }
}

/// Returns the `since` of a query for changes, decoded; `None` without one.
///
/// # Errors
/// The name of the first parameter that is unknown.
pub(crate) fn since(query: &str) -> Result<Option<Cow<'_, str>>, String> {
    let mut since = None;
    for (key, value) in pairs(query) {
        match form_decode(key).as_ref() {
            "since" => since.get_or_insert_with(|| form_decode(value)),
            unknown => return Err(unknown.to_owned()),
        };
    }
    Ok(since)
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Decodes a part of a query, in which a plus is a space.
fn form_decode(text: &str) -> Cow<'_, str> {
    if text.contains('+') {
        Cow::Owned(decode(&text.replace('+', " ")).into_owned())
    } else {
        decode(text)
    }
}

/// Decodes percent-encoding (RFC 3986, section 2.1). Other characters, also a stray percent sign, stay as they are. Bytes
/// that are not UTF-8 become U+FFFD, which no name contains.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| tail.first_chunk().and_then(hex)).flatten();
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digits: &[u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? << 4 | digit(digits[1])?).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn query(schema: &str, package: &str, name: &str) -> Query {
        let [schema, package, name] = [schema, package, name].map(str::to_owned);
        Query { schema, package, name }
    }

    #[rstest]
    #[case::nothing("", query("", "", ""))]
    #[case::all("schema=a&package=b&name=c", query("a", "b", "c"))]
    #[case::empty_is_absent("schema=&package", query("", "", ""))]
    #[case::first_wins("name=a&name=b", query("", "", "a"))]
    #[case::first_wins_even_if_empty("name=&name=b", query("", "", ""))]
    #[case::escapes("n%61me=a%2Bb+c%zz%4", query("", "", "a+b c%zz%4"))]
    #[case::empty_pairs("&&name=a&", query("", "", "a"))]
    fn parse_reads(#[case] text: &str, #[case] expected: Query) {
        assert_eq!(Query::parse(text), Ok(expected));
    }

    #[rstest]
    #[case("foo=", "foo")]
    #[case("Schema=a", "Schema")]
    #[case("schema=a&=b", "")]
    fn parse_refuses_unknown(#[case] text: &str, #[case] parameter: &str) {
        assert_eq!(Query::parse(text), Err(parameter.to_owned()));
    }

    #[test]
    fn since_refuses_other_parameters() {
        assert_eq!(since("&since=%61b&since=c"), Ok(Some("ab".into())));
        assert_eq!(since(""), Ok(None));
        assert_eq!(since("since=a&package=b"), Err("package".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn parse_never_panics(text in "\\PC*") {
            let _ = Query::parse(&text);
            decode(&text);
        }
    }
}
