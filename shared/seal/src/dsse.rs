/// The pre-authentication encoding of a payload and its type, which is what is signed: DSSE v1.0.2, protocol.md,
/// "Signature Definition". Lengths are in bytes, so no two pairs have the same encoding.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of the specification.
    #[test]
    fn it_is_as_specified() {
        let encoded = pae("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }
}
