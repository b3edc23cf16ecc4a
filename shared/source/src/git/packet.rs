//! Packet lines: the framing of git's protocol.
//!
//! ```text
//! "000a" "done\n"   four hex digits count all bytes of the packet, themselves included
//! "0000" flush      "0001" delimiter      "0002" end of the response
//! ```

use bytes::{Buf, Bytes, BytesMut};
use oci::shown;

use super::error::GitFault;

/// Maximum size of a packet with its length (git's `protocol-common`).
const MAX_PACKET_BYTES: usize = 65_520;

/// Size of the length in front of each packet.
const LENGTH_BYTES: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Data(Bytes),
    Flush,
    Delimiter,
    End,
}

/// Cuts a stream into packets. Holds at most one packet that is not complete, and the last chunk.
#[derive(Default)]
pub(super) struct PacketBuffer(BytesMut);

impl PacketBuffer {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk);
    }

    /// Returns the next packet, or `None` until more bytes come. A message of the server is an error.
    pub(super) fn next(&mut self) -> Result<Option<Packet>, GitFault> {
        let Some(digits) = self.0.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let special = match length(digits)? {
            0 => Packet::Flush,
            1 => Packet::Delimiter,
            2 => Packet::End,
            length if !(LENGTH_BYTES..=MAX_PACKET_BYTES).contains(&length) => {
                return Err(GitFault::Protocol("a packet has an impossible length"));
            }
            length if self.0.len() < length => return Ok(None),
            length => {
                let mut packet = self.0.split_to(length).freeze();
                packet.advance(LENGTH_BYTES);
                return match packet.strip_prefix(b"ERR ") {
                    Some(message) => Err(GitFault::Refused(shown(message.trim_ascii_end()))),
                    None => Ok(Some(Packet::Data(packet))),
                };
            }
        };
        self.0.advance(LENGTH_BYTES);
        Ok(Some(special))
    }

    /// Returns true if all bytes have been returned as packets.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn length(digits: &[u8; LENGTH_BYTES]) -> Result<usize, GitFault> {
    // A sign is no digit, though the parser of integers takes one.
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
    let length = text.and_then(|text| usize::from_str_radix(text, 16).ok());
    length.ok_or(GitFault::NotGit("it sends no packet lines"))
}

/// Cuts a whole answer into packets.
pub(super) fn packets(answer: &[u8]) -> Result<Vec<Packet>, GitFault> {
    let mut buffer = PacketBuffer::default();
    buffer.push(answer);
    let mut packets = Vec::new();
    while let Some(packet) = buffer.next()? {
        packets.push(packet);
    }
    if buffer.is_empty() {
        Ok(packets)
    } else {
        Err(GitFault::Protocol("an answer ends in the middle of a packet"))
    }
}

/// Returns the text of a packet without the line feed at its end.
pub(super) fn text(line: &[u8]) -> Result<&str, GitFault> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    std::str::from_utf8(line).map_err(|_| GitFault::Protocol("a line is not UTF-8"))
}

/// Returns a command of version 2 with its arguments.
pub(super) fn command(name: &str, arguments: impl IntoIterator<Item = String>) -> Bytes {
    let line = |text: String| format!("{:04x}{text}\n", LENGTH_BYTES + text.len() + 1);
    let agent = concat!("agent=catalog-mirror/", env!("CARGO_PKG_VERSION"));
    let capabilities = [
        format!("command={name}"),
        agent.to_owned(),
        "object-format=sha1".to_owned(),
    ];
    let mut request: String = capabilities.into_iter().map(line).collect();
    request.push_str("0001");
    request.extend(arguments.into_iter().map(line));
    request.push_str("0000");
    request.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &'static str) -> Packet {
        Packet::Data(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn packets_of_any_chunks_are_the_same() {
        let stream = b"0009hello0004000100020006a\n0000";
        let want = [
            data("hello"),
            data(""),
            Packet::Delimiter,
            Packet::End,
            data("a\n"),
            Packet::Flush,
        ];
        assert_eq!(packets(stream).unwrap(), want);
        for size in 1..stream.len() {
            let mut buffer = PacketBuffer::default();
            let mut found = Vec::new();
            for chunk in stream.chunks(size) {
                buffer.push(chunk);
                while let Some(packet) = buffer.next().unwrap() {
                    found.push(packet);
                }
            }
            assert_eq!(found, want, "{size}");
        }
    }

    #[test]
    fn longest_packet_passes_and_longer_one_is_refused() {
        let packet = |length: usize| [format!("{length:04x}").into_bytes(), vec![b'x'; length - 4]].concat();
        assert_eq!(packets(&packet(MAX_PACKET_BYTES)).unwrap().len(), 1);
        assert!(matches!(
            packets(&packet(MAX_PACKET_BYTES + 1)),
            Err(GitFault::Protocol(_))
        ));
    }

    #[test]
    fn malformed_packets_are_refused() {
        for (stream, want) in [
            (&b"0003"[..], "impossible length"),
            (b"ffff", "impossible length"),
            (b"+00ax", "no packet lines"),
            (b"<htm", "no packet lines"),
            (b"00\xff\xff", "no packet lines"),
            (b"0009hel", "middle of a packet"),
            (b"00", "middle of a packet"),
            (b"0014ERR not\x1b our ref\n", "not\\u{1b} our ref"),
        ] {
            let error = packets(stream).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn command_is_framed() {
        let request = command("fetch", ["done".to_owned()]);
        let lines = packets(&request).unwrap();
        assert_eq!(lines[0], data("command=fetch\n"));
        assert_eq!(lines[3..], [Packet::Delimiter, data("done\n"), Packet::Flush]);
    }
}
