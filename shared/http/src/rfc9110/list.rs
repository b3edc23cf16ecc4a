/// Returns the elements of a list field (RFC 9110, section 5.6.1) without white space around them. A comma between double
/// quotes belongs to its element: an entity tag may contain one. Empty elements are left out.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn split(field: &str) -> Vec<String> {
        elements(field.as_bytes())
            .map(|element| String::from_utf8_lossy(element).into_owned())
            .collect()
    }

    #[test]
    fn elements_keeps_commas_in_quotes() {
        assert_eq!(split(r#""a,b" , W/"c",,"d"#), [r#""a,b""#, r#"W/"c""#, r#""d"#]);
        assert_eq!(split(" ,\t, "), [""; 0]);
    }
}
