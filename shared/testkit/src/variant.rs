use std::fmt::Debug;

/// Returns the name of the variant of an enum in words, such as `not found` for `NotFound`.
pub fn variant(value: &dyn Debug) -> String {
    let text = format!("{value:?}");
    let letters = text.chars().take_while(|letter| letter.is_alphanumeric());
    letters.fold(String::new(), |mut words, letter| {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
        words
    })
}
