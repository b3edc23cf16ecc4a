//! Changes of a whole document: one odd place, other line breaks, other encodings.

use testkit::Random;

use super::words::{MUTATIONS, word};

/// Removes a character, adds a text, or both, at one place.
pub(crate) fn mutate(random: &mut Random, text: &mut String) {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if places.is_empty() {
        return;
    }
    let at = random.pick(&places);
    if random.one_in(2) {
        text.remove(at);
    }
    if !random.one_in(3) {
        text.insert_str(at, word(random, MUTATIONS));
    }
}

/// Returns the bytes of a document, mostly as it is.
pub(crate) fn encode(random: &mut Random, mut text: String) -> Vec<u8> {
    if random.one_in(12) && text.ends_with('\n') {
        text.pop();
    }
    // Kubernetes cuts files at `---` after a line feed only, and then Go loses all documents but
    // the first.
    let is_one = !text.contains("---") && !text.contains("...");
    match random.below(60) {
        0 | 1 => text.replace('\n', "\r\n").into_bytes(),
        2 if is_one => text.replace('\n', "\r").into_bytes(),
        3 if is_one && text.ends_with('\n') => {
            let units =
                std::iter::once(0xFEFF).chain(text.trim_start_matches('\u{feff}').encode_utf16());
            units.flat_map(u16::to_be_bytes).collect()
        }
        4 => text
            .chars()
            .filter_map(|c| u8::try_from(u32::from(c)).ok())
            .collect(),
        _ => text.into_bytes(),
    }
}
