use std::{collections::BTreeSet, iter::once};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Returns the text in lower case and without accents: its compatibility decomposition (Unicode
/// Annex 15, NFKD) without combining marks.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let letters = text.nfkd().filter(|letter| !is_combining_mark(*letter));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the folded words of a text. A word in camel case is there as a whole and in its parts.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    // A text repeats most of its words.
    let different: BTreeSet<&str> = split(text).collect();
    let parts = different
        .into_iter()
        .flat_map(|word| parts(word).into_iter().chain(once(word)));
    parts.flat_map(terms).collect()
}

/// Returns the folded words of a query in their order.
pub(super) fn terms(query: &str) -> Vec<String> {
    let folded = split(query).map(fold);
    // Folding may give several words: U+FDFA is one letter, and a phrase of four words.
    folded
        .flat_map(|word| split(&word).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && !is_combining_mark(letter));
    words.filter(|word| !word.is_empty())
}

/// Returns the parts of a word in camel case: `ArgoCD` gives `Argo` and `CD`, `KafkaTopic` gives
/// `Kafka` and `Topic`.
fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before = word.chars().next();
    for (at, letter) in word.char_indices() {
        if letter.is_uppercase() && !before.is_some_and(char::is_uppercase) {
            parts.push(&word[start..at]);
            start = at;
        }
        before = Some(letter);
    }
    if start > 0 {
        parts.push(&word[start..]);
    }
    parts
}

/// Returns true if one letter of `one` was changed, added, left out, or swapped with its neighbour
/// to make `other`.
pub(super) fn is_typo(one: &str, other: &str) -> bool {
    let starts = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    let start: usize = starts.map(|(letter, _)| letter.len_utf8()).sum();
    let one = &one[start..];
    let other = &other[start..];
    let ends = one
        .chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(a, b)| a == b);
    let end: usize = ends.map(|(letter, _)| letter.len_utf8()).sum();
    let [one, other] = [one, other].map(|word| {
        let mut letters = word[..word.len() - end].chars();
        [letters.next(), letters.next(), letters.next()]
    });
    match (one, other) {
        ([left, None, _], [right, None, _]) => left != right,
        ([a, b, None], [c, d, None]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_camel_case_keep_capitals_together() {
        assert!(
            words("ArgoCD-Clusters")
                .iter()
                .eq(["argo", "argocd", "cd", "clusters"])
        );
    }

    #[test]
    fn typo_is_one_edit() {
        let pairs = |text: &'static str| text.split(' ').map(|pair| pair.split_once('/').unwrap());
        for (one, other) in
            pairs("kafka/kafak kafka/kafk kafk/kafka kafka/kefka kafka/xkafka grafana/gafana ab/ba")
        {
            assert!(is_typo(one, other), "{one} {other}");
        }
        for (one, other) in pairs("kafka/kafka kafka/kaf kafka/fakka abcd/badc kafka/xkafkax /ab") {
            assert!(!is_typo(one, other), "{one} {other}");
        }
    }
}
