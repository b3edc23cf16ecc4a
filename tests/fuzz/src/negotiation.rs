use http::{StatusCode, header::ACCEPT_ENCODING};
use model::Sha256;
use testkit::Answer;

use crate::field::{fields, joined};
use crate::site::with_site;

/// Sends an `Accept-Encoding`: the answer has the preferred coding, never a refused one, and holds the catalog.
///
/// # Panics
/// If it does not.
pub(crate) fn accept_encoding(input: &[u8]) {
    let Some(fields) = fields(&ACCEPT_ENCODING, input) else {
        return;
    };
    let weights = joined(&fields).and_then(|field| weights(&field));
    with_site(|site| {
        let answer = site.get("/catalogs/demo/api/v1/all", fields);
        let chosen = coding(&answer);
        if answer.status == StatusCode::OK {
            assert_eq!(Sha256::of(&answer.decoded()), site.current.content_hash);
        } else {
            assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE);
        }
        if let Some(weights) = weights {
            check(&answer, chosen, &weights);
        }
    });
}

fn check(answer: &Answer, chosen: &str, weights: &Weights) {
    let all = ["zstd", "gzip", "identity"].map(|coding| (coding, weight(weights, coding)));
    let best = all.iter().filter_map(|(_, weight)| *weight).max();
    match best {
        None => assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE, "{weights:?}"),
        Some(_) => {
            assert_eq!(answer.status, StatusCode::OK, "{weights:?}");
            assert_eq!(weight(weights, chosen), best, "{chosen} for {weights:?}");
        }
    }
}

/// Codings in lower case with their weights in thousandths.
type Weights = Vec<(String, u32)>;

/// Parses the field by its grammar (RFC 9110, sections 12.4.2 and 12.5.3); `None` if it is malformed.
fn weights(field: &str) -> Option<Weights> {
    let elements = field.split(',').map(|element| element.trim_matches([' ', '\t']));
    elements.filter(|element| !element.is_empty()).map(element).collect()
}

fn element(text: &str) -> Option<(String, u32)> {
    let (name, weight) = match text.split_once(';') {
        None => (text, "q=1"),
        Some((name, weight)) => (name, weight),
    };
    let name = name.trim_end_matches([' ', '\t']).to_ascii_lowercase();
    let weight = weight.trim_start_matches([' ', '\t']).to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let value = weight.strip_prefix("q=")?;
    let grammatical = value.len() <= 5 && (value == "0" || value == "1" || value.get(1..2) == Some("."));
    let digits = value
        .bytes()
        .enumerate()
        .all(|(at, byte)| at == 1 || byte.is_ascii_digit());
    if name.is_empty() || !name.bytes().all(is_token) || !grammatical || !digits {
        return None;
    }
    let name = if name == "x-gzip" { "gzip".to_owned() } else { name };
    let thousandths = (value.parse::<f64>().ok()? * 1000.0).round();
    (thousandths <= 1000.0).then_some((name, thousandths as u32))
}

/// Returns the weight of a coding, or `None` if it is refused. Of two weights for one coding, the first one counts.
fn weight(weights: &Weights, coding: &str) -> Option<u32> {
    let find = |name: &str| {
        weights
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, weight)| *weight)
    };
    match find(coding).or_else(|| find("*")) {
        Some(0) => None,
        Some(weight) => Some(weight),
        None => (coding == "identity").then_some(0),
    }
}

fn coding(answer: &Answer) -> &str {
    match answer.header("content-encoding") {
        "" => "identity",
        coding => coding,
    }
}
