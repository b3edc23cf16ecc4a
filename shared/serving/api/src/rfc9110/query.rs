use std::borrow::Cow;
use std::fmt;

use olm::{SEARCH_LIMIT_MAX, SearchFacet, SearchQuery};
use percent_encoding::percent_decode_str;
use reader::MetaFilter;

use crate::error::ApiError;

/// Reads the filters of a `metas` query, as catalogd does: the first value of a parameter wins, an
/// empty value is no filter, and all filters have to match.
///
/// # Errors
/// As [`parameters`].
pub(crate) fn metas_filter(query: &str) -> Result<MetaFilter, ApiError> {
    let [schema, package, name] =
        parameters(query, "schema, package and name")?.map(Option::unwrap_or_default);
    Ok(MetaFilter {
        schema,
        package,
        name,
    })
}

/// Number of packages in an answer to a search that names none.
const SEARCH_LIMIT: usize = 20;

/// Reads a query for a search. The first value of a parameter wins, and an empty value is no
/// filter.
///
/// # Errors
/// As [`parameters`], and [`ApiError::Limit`] and [`ApiError::Page`] for a limit and an offset that
/// cannot be used.
pub(crate) fn search_query(query: &str) -> Result<SearchQuery, ApiError> {
    let known = "q, package, category, provider, capability, arch, limit and offset";
    let [
        text,
        package,
        category,
        provider,
        capability,
        arch,
        limit,
        offset,
    ] = parameters(query, known)?.map(|value| value.filter(|value| !value.is_empty()));
    let filter = [
        (SearchFacet::Package, package),
        (SearchFacet::Category, category),
        (SearchFacet::Provider, provider),
        (SearchFacet::Capability, capability),
        (SearchFacet::Arch, arch),
    ];
    let filter = filter
        .into_iter()
        .filter_map(|(facet, value)| Some((facet, value?)));
    Ok(SearchQuery {
        text: text.unwrap_or_default(),
        filter: filter.collect(),
        offset: offset_of(offset)?,
        limit: match limit {
            None => SEARCH_LIMIT,
            Some(value) => {
                let limit = value
                    .parse()
                    .ok()
                    .filter(|limit| *limit <= SEARCH_LIMIT_MAX);
                limit.ok_or(ApiError::Limit(value))?
            }
        },
    })
}

/// Part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListPage {
    /// Number of rows that are left out.
    pub(crate) offset: usize,
    /// Maximum number of rows; `None` for all.
    pub(crate) limit: Option<usize>,
}

impl ListPage {
    /// Reads a query for a part of a list. An empty value is as if it were absent.
    ///
    /// # Errors
    /// As [`parameters`], and [`ApiError::Page`] for a limit or an offset that is no number.
    pub(crate) fn of_query(query: &str) -> Result<Self, ApiError> {
        let [limit, offset] = parameters(query, "limit and offset")?
            .map(|value| value.filter(|value| !value.is_empty()));
        let limit = match limit {
            None => None,
            Some(value) => Some(value.parse().map_err(|_| ApiError::Page(value))?),
        };
        Ok(Self {
            offset: offset_of(offset)?,
            limit,
        })
    }
}

impl fmt::Display for ListPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            None => write!(f, "{}", self.offset),
            Some(limit) => write!(f, "{} {limit}", self.offset),
        }
    }
}

fn offset_of(value: Option<String>) -> Result<usize, ApiError> {
    match value {
        None => Ok(0),
        Some(value) => value.parse().map_err(|_| ApiError::Page(value)),
    }
}

/// Reads the parameters of a query that are `known`, in this order: their names as an error lists
/// them. The first value of each counts.
///
/// # Errors
/// [`ApiError::Parameter`] for the first parameter that is unknown.
pub(crate) fn parameters<const N: usize>(
    query: &str,
    known: &'static str,
) -> Result<[Option<String>; N], ApiError> {
    let names = known.split(", ").flat_map(|names| names.split(" and "));
    let mut values = [const { None }; N];
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(at) = names.clone().position(|name| name == key) else {
            return Err(ApiError::Parameter(key.into_owned(), known));
        };
        values[at].get_or_insert_with(|| value.into_owned());
    }
    Ok(values)
}

/// Refuses a query with a parameter.
///
/// # Errors
/// [`ApiError::NoParameters`] with the first one.
pub(crate) fn no_parameters(query: &str) -> Result<(), ApiError> {
    match form_urlencoded::parse(query.as_bytes()).next() {
        None => Ok(()),
        Some((key, _)) => Err(ApiError::NoParameters(key.into_owned())),
    }
}

/// Decodes percent-encoding (RFC 3986, section 2.1). Other characters, also a stray percent sign,
/// stay as they are. Bytes that are not UTF-8 become U+FFFD, which no name contains.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn query(schema: &str, package: &str, name: &str) -> MetaFilter {
        let [schema, package, name] = [schema, package, name].map(str::to_owned);
        MetaFilter {
            schema,
            package,
            name,
        }
    }

    #[rstest]
    #[case::nothing("", Ok(query("", "", "")))]
    #[case::all("schema=a&package=b&name=c", Ok(query("a", "b", "c")))]
    #[case::empty_is_absent("schema=&package", Ok(query("", "", "")))]
    #[case::first_wins("name=a&name=b", Ok(query("", "", "a")))]
    #[case::first_wins_even_if_empty("name=&name=b", Ok(query("", "", "")))]
    #[case::escapes("n%61me=a%2Bb+c%zz%4", Ok(query("", "", "a+b c%zz%4")))]
    #[case::empty_pairs("&&name=a&", Ok(query("", "", "a")))]
    #[case::unknown("foo=", Err("foo"))]
    #[case::unknown_case("Schema=a", Err("Schema"))]
    #[case::unknown_after_known("schema=a&=b", Err(""))]
    fn metas_filter_reads(#[case] text: &str, #[case] expected: Result<MetaFilter, &str>) {
        let found = metas_filter(text).map_err(|error| error.to_string());
        let unknown = |name| {
            format!("there is no query parameter {name:?} here: only schema, package and name")
        };
        assert_eq!(found, expected.map_err(unknown));
    }

    proptest::proptest! {
        #[test]
        fn metas_filter_never_panics(text in "\\PC*") {
            let _ = metas_filter(&text);
            decode(&text);
        }
    }
}
