// The generator of the files that are compared with Go's answers.
#[path = "../../../shared/core/fbc/tests/differential/changes.rs"]
mod changes;
#[path = "../../../shared/core/fbc/tests/differential/documents/mod.rs"]
mod documents;
#[path = "../../../shared/core/fbc/tests/differential/words.rs"]
mod words;

use testkit::Random;

use crate::fbc::checked_lines;

/// First byte of an input that holds choices of the generator. A YAML file cannot start with it.
pub(crate) const CHOICES: u8 = 1;

/// Size to which one part of a file may be repeated, in bytes. Limits on memory apply from 512 KiB
/// on.
const LARGE: usize = 600 << 10;

/// Parses a YAML file, or the file that the generator makes of choices, and checks what holds for
/// every file. The values are those of Go's libraries: the differential test compares them.
///
/// # Panics
/// If not.
pub(crate) fn yaml(input: &[u8]) {
    let file = match input {
        [CHOICES, choices @ ..] => generated(choices),
        input => input.to_vec(),
    };
    if !file.trim_ascii_start().starts_with(b"{") {
        checked_lines(&file, "\n---\n");
    }
}

/// Returns a generated file. Any bytes describe one.
fn generated(choices: &[u8]) -> Vec<u8> {
    let mut random = Random::of_choices(choices);
    // Large files take a hundred times as long as small ones, so they are rare.
    let is_large = random.one_in(32);
    let (separator, place) = (random.pick(b",\n"), random.below(256));
    let mut file = documents::file(random);
    let ends: Vec<usize> = (0..file.len())
        .filter(|at| file[*at] == separator)
        .collect();
    if is_large && let Some(&[start, end]) = ends.windows(2).nth(place % ends.len().max(1)) {
        let part = file[start..end].to_vec();
        file.splice(end..end, part.repeat(LARGE / part.len()));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::{LARGE, generated};
    use crate::seeds::noise;

    #[test]
    fn noise_describes_small_and_large_files() {
        let sizes: Vec<usize> = (0..100).map(|seed| generated(&noise(seed)).len()).collect();
        assert!(sizes.iter().any(|size| *size < 100) && sizes.iter().any(|size| *size > LARGE / 2));
    }
}
