//! The `Link` header to the next page of a list (RFC 8288, "Web Linking").

use reqwest::header::{HeaderMap, LINK};

/// Returns the target of the first link to a next page, as written. Malformed links are skipped (RFC 8288, appendix B).
pub fn next_link(headers: &HeaderMap) -> Option<String> {
    let fields = headers.get_all(LINK).iter();
    let mut fields = fields.map(|field| String::from_utf8_lossy(field.as_bytes()));
    fields.find_map(|field| next_in(&field))
}

fn next_in(field: &str) -> Option<String> {
    let mut rest = LinkText(field);
    loop {
        // An element of a list may be empty (RFC 9110, section 5.6.1.2).
        while rest.skip(',') {}
        let target = rest.skip('<').then(|| rest.until(&['>']))?;
        let is_whole = rest.skip('>');
        if rest.is_next() && is_whole {
            return Some(target.to_owned());
        }
        rest.until(&[',']);
    }
}

/// The unread part of a header.
struct LinkText<'a>(&'a str);

impl<'a> LinkText<'a> {
    /// Takes the text up to the first of these characters, or to the end.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let (taken, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Skips white space. Returns true if the next character is `wanted`, and takes it.
    fn skip(&mut self, wanted: char) -> bool {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Takes the parameters of a link (RFC 8288, appendix B.3). Returns true if they are those of the next page. Only the first
    /// `rel` counts, and it may name several relations (section 3.3). A link with an anchor starts at another document
    /// (section 3.2). No list of the parameters is kept, because a header may hold 400,000 of them.
    fn is_next(&mut self) -> bool {
        let (mut relations, mut has_anchor) = (None, false);
        while self.skip(';') {
            let name = self.until(&['=', ';', ',']).trim();
            let value = if self.skip('=') { self.value() } else { String::new() };
            has_anchor |= name.eq_ignore_ascii_case("anchor");
            if name.eq_ignore_ascii_case("rel") {
                relations.get_or_insert(value);
            }
        }
        let relations = relations.unwrap_or_default();
        let mut relations = relations.split_ascii_whitespace();
        relations.any(|relation| relation.eq_ignore_ascii_case("next")) && !has_anchor
    }

    fn value(&mut self) -> String {
        if !self.skip('"') {
            return self.until(&[';', ',']).trim().to_owned();
        }
        // A backslash quotes the next character (RFC 9110, section 5.6.4).
        let mut value = String::new();
        let mut characters = self.0.chars();
        while let Some(character) = characters.next().filter(|character| *character != '"') {
            value.extend(if character == '\\' {
                characters.next()
            } else {
                Some(character)
            });
        }
        self.0 = characters.as_str();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_in_returns_first_link_to_next_page() {
        for (field, expected) in [
            (
                r#"</v2/a/referrers/b?last=c>; rel="next""#,
                Some("/v2/a/referrers/b?last=c"),
            ),
            ("<https://a/b>;rel=next", Some("https://a/b")),
            ("  <b>  ;  REL  =  NEXT  ", Some("b")),
            (r#"<a>; rel="prev", <b>; rel="next""#, Some("b")),
            (r#"<a,b;c>; title="x, <y>; rel=next"; rel="last next""#, Some("a,b;c")),
            (r#"<a>; title="\"; rel=next"; rel=prev,<b>;rel=next"#, Some("b")),
            (",, <a>; rel=next", Some("a")),
            ("<a>; rel=next; rel=prev", Some("a")),
            ("<>; rel=next", Some("")),
            ("<a>; rel=prev; rel=next", None),
            (r#"<a>; rel="nextish""#, None),
            (r##"<a>; rel=next; anchor="#x""##, None),
            ("<a>; next", None),
            ("<a>", None),
            ("<a; rel=next", None),
            ("a; rel=next", None),
            ("<a>; rel=\"next", Some("a")),
            ("", None),
        ] {
            assert_eq!(next_in(field).as_deref(), expected, "{field}");
        }
    }

    #[test]
    fn next_searches_all_link_headers() {
        let mut headers = HeaderMap::new();
        assert_eq!(next_link(&headers), None);
        for field in ["<a>; rel=prev", "<b>; rel=next", "<c>; rel=next"] {
            headers.append(LINK, field.parse().unwrap());
        }
        assert_eq!(next_link(&headers).as_deref(), Some("b"));
    }

    #[test]
    fn next_in_truncated_header_terminates() {
        let field = r#" , <a,b>; title="x\"; y" ; rel = "last next" ;q=1,<c>; rel=next"#;
        assert_eq!(next_in(field).as_deref(), Some("a,b"));
        for length in 0..field.len() {
            let found = next_in(&field[..length]);
            assert!(found.is_none() || length > field.find("next").unwrap(), "{length}");
        }
    }
}
