//! Text form of certificates and keys (PEM, RFC 7468).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// First line of a certificate (RFC 7468, section 5), without its end.
pub const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Characters of base64 on one line (RFC 7468, section 2).
const LINE_CHARS: usize = 64;

/// Returns the certificates of a PEM file, each with what stands in front of the next one. They are
/// split before they are parsed, so that one that is cut off does not hide the next one.
pub fn certificates(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(file);
    let mut certificates = Vec::new();
    for rest in text.split(BEGIN_CERTIFICATE).skip(1) {
        certificates.push(format!("{BEGIN_CERTIFICATE}{rest}"));
    }
    certificates
}

/// Returns a section with this label, such as `PUBLIC KEY`.
pub fn section(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    let base64 = STANDARD.encode(der);
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_CHARS));
        text += line;
        text += "\n";
        rest = after;
    }
    text + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_breaks_lines_after_64_characters() {
        for (bytes, lines) in [(1, "4"), (48, "64"), (49, "64 4"), (96, "64 64")] {
            let text = section("PUBLIC KEY", &vec![0; bytes]);
            let text = text.strip_prefix("-----BEGIN PUBLIC KEY-----\n").unwrap();
            let body = text.strip_suffix("\n-----END PUBLIC KEY-----\n").unwrap();
            let lengths: Vec<String> = body.lines().map(|line| line.len().to_string()).collect();
            assert_eq!(lengths.join(" "), lines, "{bytes}");
        }
    }

    #[test]
    fn certificates_are_split_at_their_beginning() {
        let whole = section("CERTIFICATE", b"whole");
        let cut = format!("{BEGIN_CERTIFICATE}\nAAAA\n");
        let file = format!("a comment\n{cut}{whole}");
        assert_eq!(certificates(file.as_bytes()), [cut, whole]);
        assert!(certificates(b"no certificate\n").is_empty());
    }
}
