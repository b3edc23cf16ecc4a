use pgp::{
    errors::{Error, Result},
    packet::{Packet, PacketParser},
};
use policy::OpenPgpError;

use crate::error;

/// All packets (RFC 9580, section 4) of bytes that are nothing else, at most so many. Each may be one that cannot be read.
pub(crate) fn packets(mut bytes: &[u8], most: usize) -> std::result::Result<Vec<Result<Packet>>, OpenPgpError> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        if packets.len() == most {
            return Err(error(format!("there are more than {most} packets")));
        }
        // One parser for each packet: it takes an unfinished header for the end, and only what is left tells.
        let packet = PacketParser::new(&mut bytes).next();
        packets.push(packet.ok_or_else(|| error("the last packet breaks off"))?);
    }
    Ok(packets)
}

/// Whether a packet is one of a kind that whoever does not know it may pass over (RFC 9580, section 4.3), or one of a later
/// version.
pub(crate) fn is_unknown(why: &Error) -> bool {
    match why {
        Error::Unsupported { .. } => true,
        Error::InvalidPacketContent { source } => is_unknown(source),
        _ => false,
    }
}
