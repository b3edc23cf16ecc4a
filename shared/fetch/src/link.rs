//! The `Link` header to the next page of a list (RFC 8288, "Web Linking").

use reqwest::header::{HeaderMap, LINK};

/// Returns the target of the first link to a next page, as written.
pub fn next_link(headers: &HeaderMap) -> Option<String> {
    let fields = headers.get_all(LINK).iter().filter_map(|field| field.to_str().ok());
    // No URL holds angle brackets, so that each link begins at one.
    let mut links = fields.flat_map(|field| field.split('<').skip(1));
    links.find_map(next_in).map(ToOwned::to_owned)
}

/// Returns the target of `TARGET>; PARAMETERS` if it is the next page.
fn next_in(link: &str) -> Option<&str> {
    let (target, parameters) = link.split_once('>')?;
    let is_next = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        let is_relation = name.trim().eq_ignore_ascii_case("rel");
        Some(is_relation && value.trim().trim_matches('"').eq_ignore_ascii_case("next"))
    };
    let mut parameters = parameters.trim_end_matches([',', ' ', '\t']).split(';');
    parameters
        .any(|parameter| is_next(parameter) == Some(true))
        .then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_link_is_the_first_link_to_a_next_page() {
        let no_links = [
            r#"<a>; rel="nextish""#,
            "<a>; next",
            "<a>",
            "<a; rel=next",
            "a; rel=next",
            "",
        ];
        let list = r#"</v2/a/referrers/b?last=c,d>; rel="next""#;
        for (fields, expected) in [
            (&[list][..], Some("/v2/a/referrers/b?last=c,d")),
            (&["<https://a/b>;rel=next"], Some("https://a/b")),
            (&["  <b>  ; x=y ;  REL  =  NEXT  "], Some("b")),
            (&["<a>; rel=prev", "<b>; rel=next", "<c>; rel=next"], Some("b")),
            (&[r#"<a>; rel="prev", <b>; rel="next" , <c>; rel=last"#], Some("b")),
            (&["<>; rel=next"], Some("")),
            (&no_links, None),
            (&[], None),
        ] {
            let headers = fields.iter().map(|field| (LINK, field.parse().unwrap()));
            let found = next_link(&HeaderMap::from_iter(headers));
            assert_eq!(found.as_deref(), expected, "{fields:?}");
        }
    }
}
