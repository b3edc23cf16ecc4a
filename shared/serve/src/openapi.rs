use bytes::Bytes;

/// The OpenAPI document.
pub(crate) fn document() -> Bytes {
    Bytes::from_static(b"{}\n")
}
