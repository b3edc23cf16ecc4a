//! RFC 9110 as pure functions of header fields: no store, no async.

mod accept;
mod conditional;
mod query;
mod range;

use http::Method;

pub(crate) use accept::negotiate;
pub(crate) use conditional::{Modified, Precondition, Tag, evaluate, if_range_holds};
pub(crate) use query::{ListPage, decode, metas_filter, no_parameters, parameters, search_query};
pub(crate) use range::parse_range;

/// Returns the elements of a list field (RFC 9110, section 5.6.1) without white space around them.
/// A comma between double quotes belongs to its element: an entity tag may contain one. Empty
/// elements are left out.
pub(crate) fn elements(field: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    field
        .split(move |&byte| {
            quoted ^= byte == b'"';
            byte == b',' && !quoted
        })
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

/// True for the methods that read, the only ones that are answered.
pub(crate) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests {
    mod cost;
}
