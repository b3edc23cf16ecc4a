//! Packets, of which keys and messages consist.

use pgp::packet::{Packet, PacketParser};

use crate::policy::OpenPgpError;

pub(super) fn error(what: impl std::fmt::Display) -> OpenPgpError {
    OpenPgpError(what.to_string())
}

/// Returns all packets (RFC 9580, section 4) of `bytes`, at most `most`. A packet may be an error.
/// Fails if other bytes follow the packets.
pub(super) fn packets(
    mut bytes: &[u8],
    most: usize,
) -> Result<Vec<pgp::errors::Result<Packet>>, OpenPgpError> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        if packets.len() == most {
            return Err(error(format!("there are more than {most} packets")));
        }
        // The parser takes an incomplete header for the end of the input, so each packet has its
        // own parser, and only the rest of the bytes tells if the input ends.
        let packet = PacketParser::new(&mut bytes).next();
        packets.push(packet.ok_or_else(|| error("the last packet breaks off"))?);
    }
    Ok(packets)
}

/// Returns true if a packet has an unknown type or version, so that it may be skipped (RFC 9580,
/// section 4.3).
pub(super) fn is_unknown(why: &pgp::errors::Error) -> bool {
    match why {
        pgp::errors::Error::Unsupported { .. } => true,
        pgp::errors::Error::InvalidPacketContent { source } => is_unknown(source),
        _ => false,
    }
}
