mod cost;

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
