//! The `Link` header to the next page of a list (RFC 8288, "Web Linking").

use reqwest::header::{HeaderMap, LINK};

/// Returns the target of the first field that links to a next page, as written. A field has one link, as those of registries do.
pub fn next_link(headers: &HeaderMap) -> Option<String> {
    let fields = headers.get_all(LINK).iter();
    let mut fields = fields.filter_map(|field| field.to_str().ok());
    fields.find_map(next_in).map(ToOwned::to_owned)
}

fn next_in(field: &str) -> Option<&str> {
    let (target, parameters) = field.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        let is_relation = name.trim().eq_ignore_ascii_case("rel");
        Some(is_relation && value.trim().trim_matches('"').eq_ignore_ascii_case("next"))
    };
    let mut parameters = parameters.split(';');
    parameters
        .any(|parameter| is_next(parameter) == Some(true))
        .then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_link_is_that_of_the_first_field_to_a_next_page() {
        for (fields, expected) in [
            (
                &[r#"</v2/a/referrers/b?last=c,d>; rel="next""#][..],
                Some("/v2/a/referrers/b?last=c,d"),
            ),
            (&["<https://a/b>;rel=next"], Some("https://a/b")),
            (&["  <b>  ; x=y ;  REL  =  NEXT  "], Some("b")),
            (&["<a>; rel=prev", "<b>; rel=next", "<c>; rel=next"], Some("b")),
            (&["<>; rel=next"], Some("")),
            (
                &[
                    r#"<a>; rel="nextish""#,
                    "<a>; next",
                    "<a>",
                    "<a; rel=next",
                    "a; rel=next",
                    "",
                ],
                None,
            ),
            (&[], None),
        ] {
            let headers = fields.iter().map(|field| (LINK, field.parse().unwrap()));
            assert_eq!(
                next_link(&HeaderMap::from_iter(headers)).as_deref(),
                expected,
                "{fields:?}"
            );
        }
    }
}
