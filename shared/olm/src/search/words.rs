use std::collections::BTreeSet;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Maximum length of a word, in characters. Longer ones are encoded data.
const WORD_CHARS: usize = 40;

/// Returns the text in lower case and without accents: its compatibility decomposition (Unicode Annex 15, NFKD) without
/// combining marks.
pub(super) fn fold(text: &str) -> String {
    let letters = text.nfkd().filter(|letter| !is_combining_mark(*letter));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the folded words of a text. A word in camel case is there as a whole and in its parts.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric() && !is_combining_mark(letter)) {
        if word.is_empty() || word.chars().count() > WORD_CHARS {
            continue;
        }
        found.extend(parts(word).into_iter().map(fold));
        found.insert(fold(word));
    }
    found
}

/// Returns the folded terms of a query in their order.
pub(super) fn terms(query: &str) -> Vec<String> {
    let terms = query.split(|letter: char| !letter.is_alphanumeric() && !is_combining_mark(letter));
    terms.filter(|term| !term.is_empty()).map(fold).collect()
}

/// Returns the parts of a word in camel case: `ArgoCD` gives `Argo` and `CD`, `KafkaTopic` gives `Kafka` and `Topic`.
fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    for window in letters.windows(2) {
        let [(_, before), (at, letter)] = *window else { continue };
        if letter.is_uppercase() && !before.is_uppercase() {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    if start > 0 {
        parts.push(&word[start..]);
    }
    parts
}

/// Returns true if one letter of `one` was changed, added, left out, or swapped with its neighbour to make `other`.
pub(super) fn is_typo(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.chars(), other.chars());
    loop {
        let (left, right) = (one.clone(), other.clone());
        match (one.next(), other.next()) {
            (Some(a), Some(b)) if a == b => {}
            (None, None) => return false,
            (a, b) => {
                let swapped = one.clone().next() == b && other.clone().next() == a && a.is_some() && b.is_some();
                let (rest_of_one, rest_of_other) = (one.as_str(), other.as_str());
                return rest_of_one == rest_of_other
                    || rest_of_one == right.as_str()
                    || left.as_str() == rest_of_other
                    || (swapped && skip(rest_of_one) == skip(rest_of_other));
            }
        }
    }
}

fn skip(text: &str) -> &str {
    let mut letters = text.chars();
    letters.next();
    letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_split() {
        let found = words("Überwachung des ArgoCD-Clusters, für ﬁnance_v2!");
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "argo",
                "argocd",
                "cd",
                "clusters",
                "des",
                "finance",
                "fur",
                "uberwachung",
                "v2"
            ]
        );
        assert!(words(&"a".repeat(WORD_CHARS + 1)).is_empty());
        assert_eq!(terms("  cert-manager Ü "), ["cert", "manager", "u"]);
    }

    #[test]
    fn typo_is_one_edit() {
        for (one, other) in [
            ("kafka", "kafak"),
            ("kafka", "kafk"),
            ("kafk", "kafka"),
            ("kafka", "kefka"),
            ("kafka", "xkafka"),
            ("grafana", "gafana"),
            ("ab", "ba"),
        ] {
            assert!(is_typo(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("kafka", "kafka"),
            ("kafka", "kaf"),
            ("kafka", "fakka"),
            ("abcd", "badc"),
            ("kafka", "xkafkax"),
            ("", "ab"),
        ] {
            assert!(!is_typo(one, other), "{one} {other}");
        }
    }
}
