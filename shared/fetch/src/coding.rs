//! Content codings of bodies (RFC 9110, section 8.4.1). None is asked for, but some servers and proxies apply one all the same.

use std::fmt;
use std::io::{self, Write};
use std::mem::take;

use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};

use crate::error::FetchError;
use crate::redact::SentSecrets;

/// Number of bytes that are decoded at a time. They may become 8 MiB, 32,768 times as many, in the worst case of zstd.
const INPUT_BYTES: usize = 256;

/// Number of bytes by which a coding is recognized.
const START_BYTES: usize = 4;

/// Number of decoded bytes that are returned at a time, if there are as many.
const OUTPUT_BYTES: usize = 64 << 10;

/// Maximum number of bytes that decode to nothing, as empty members and frames do.
const EMPTY_BYTES: usize = 1 << 20;

/// Maximum window of zstd, 8 MiB (RFC 9659, section 3).
const WINDOW_LOG: u32 = 23;

/// Decoder of the body of one answer. The default leaves it as it is.
#[derive(Default)]
pub(crate) struct BodyDecoder {
    /// Name of the coding, and its decoder if it is known.
    coding: Option<(String, Option<Box<dyn PushDecoder>>)>,
    /// Bytes that were received and not decoded yet.
    pending: Bytes,
    /// True if the first bytes were compared with the coding.
    is_started: bool,
    /// True if no more bytes will be received.
    is_ended: bool,
    /// Number of bytes that were decoded since the last output.
    empty: usize,
}

/// Decoder that writes to memory.
trait PushDecoder: Write + Send + Sync {
    fn output(&mut self) -> &mut Vec<u8>;
}

impl PushDecoder for MultiGzDecoder<Vec<u8>> {
    fn output(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }
}

impl PushDecoder for ZlibDecoder<Vec<u8>> {
    fn output(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }
}

impl PushDecoder for zstd::stream::write::Decoder<'static, Vec<u8>> {
    fn output(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }
}

impl BodyDecoder {
    pub(crate) fn new(headers: &HeaderMap) -> Self {
        let mut names = headers.get_all(CONTENT_ENCODING).iter();
        let mut names: Vec<_> = names
            .by_ref()
            .map(|name| String::from_utf8_lossy(name.as_bytes()))
            .collect();
        // Storage that keeps the header of an upload in chunks sends it with the plain object.
        names.retain(|name| !["", "identity", "aws-chunked"].contains(&name.trim()));
        let name = names.join(", ").to_ascii_lowercase();
        let coding = (!name.is_empty()).then(|| {
            let decoder = decoder(name.trim());
            (SentSecrets::default().show(&name), decoder)
        });
        Self {
            coding,
            ..Self::default()
        }
    }

    /// Returns true if the body has a coding.
    pub(crate) fn is_coded(&self) -> bool {
        self.coding.is_some()
    }

    /// Takes the next bytes as they were received.
    pub(crate) fn push(&mut self, received: Bytes) {
        self.pending = if self.pending.is_empty() {
            received
        } else {
            [&self.pending[..], &received].concat().into()
        };
    }

    /// Notes the end of the body. Returns true if there are bytes that [`Self::next`] has to return.
    pub(crate) fn end(&mut self) -> bool {
        self.is_ended = true;
        !self.pending.is_empty()
    }

    /// Returns the next decoded bytes; `None` if more have to be received first.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        if !self.is_started && self.coding.is_some() {
            if self.pending.len() < START_BYTES && !self.is_ended {
                return Ok(None);
            }
            self.is_started = true;
            self.coding.take_if(|(name, _)| !may_start(name, &self.pending));
        }
        let Some((name, decoder)) = &mut self.coding else {
            return Ok(Some(take(&mut self.pending)).filter(|bytes| !bytes.is_empty()));
        };
        let failed = |source| FetchError::Coding {
            coding: name.clone(),
            source,
        };
        let Some(decoder) = decoder else {
            return Err(failed(None));
        };
        while !self.pending.is_empty() && decoder.output().len() < OUTPUT_BYTES {
            let input = self.pending.split_to(self.pending.len().min(INPUT_BYTES));
            let decoded = decoder.write_all(&input).and_then(|()| decoder.flush());
            decoded.map_err(|error| failed(Some(error)))?;
            self.empty += input.len();
            if decoder.output().is_empty() && self.empty > EMPTY_BYTES {
                return Err(failed(Some(io::Error::other("it decodes to nothing"))));
            }
        }
        let output = take(decoder.output());
        if output.is_empty() {
            return Ok(None);
        }
        self.empty = 0;
        Ok(Some(output.into()))
    }
}

/// Returns false if a body starts otherwise than all of its coding do: some servers only say that it has one.
fn may_start(name: &str, body: &[u8]) -> bool {
    match name {
        "gzip" | "x-gzip" => body.starts_with(&[0x1f, 0x8b]),
        // The check bits of RFC 1950, section 2.2.
        "deflate" => body.len() > 1 && body[0] & 15 == 8 && u16::from_be_bytes([body[0], body[1]]).is_multiple_of(31),
        // A frame, or a skippable one.
        "zstd" => body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || body.get(1..4) == Some(&[0x2a, 0x4d, 0x18]),
        _ => true,
    }
}

fn decoder(name: &str) -> Option<Box<dyn PushDecoder>> {
    match name {
        "gzip" | "x-gzip" => Some(Box::new(MultiGzDecoder::new(Vec::new()))),
        "deflate" => Some(Box::new(ZlibDecoder::new(Vec::new()))),
        "zstd" => {
            let mut decoder = zstd::stream::write::Decoder::new(Vec::new()).ok()?;
            decoder.window_log_max(WINDOW_LOG).ok()?;
            Some(Box::new(decoder))
        }
        _ => None,
    }
}

impl fmt::Debug for BodyDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.coding.as_ref().map(|(name, _)| name);
        f.debug_tuple("BodyDecoder").field(&name).finish()
    }
}

#[cfg(test)]
mod tests {
    use testkit::{gzip, zstd};

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes a body that comes in chunks of this size. Returns it with the size of the largest output.
    fn decode(coding: &str, body: &[u8], chunk: usize) -> Result<(Vec<u8>, usize), FetchError> {
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, coding.parse().unwrap())]);
        let mut decoder = BodyDecoder::new(&headers);
        let (mut all, mut largest) = (Vec::new(), 0);
        for chunk in body.chunks(chunk) {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(bytes) = decoder.next()? {
                largest = largest.max(bytes.len());
                all.extend_from_slice(&bytes);
            }
        }
        if decoder.end() {
            all.extend_from_slice(&decoder.next()?.unwrap());
        }
        Ok((all, largest))
    }

    #[test]
    fn decoder_returns_the_body_of_each_coding() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
        let halves = text.split_at(5000);
        for (coding, body) in [
            ("identity", text.clone()),
            ("aws-chunked", text.clone()),
            ("gzip", gzip(&text)),
            ("x-GZIP", [gzip(halves.0), gzip(halves.1)].concat()),
            ("deflate", zlib(&text)),
            ("zstd", [zstd(halves.0), zstd(halves.1)].concat()),
            // Labelled only.
            ("gzip", text.clone()),
            ("deflate", text.clone()),
            ("zstd", text.clone()),
        ] {
            for chunk in [1, 1000, usize::MAX] {
                assert_eq!(decode(coding, &body, chunk).unwrap().0, text, "{coding} {chunk}");
            }
        }
    }

    #[test]
    fn decoder_returns_large_output_in_parts() {
        let zeros = vec![0; 64 << 20];
        for (coding, body) in [("gzip", gzip(&zeros)), ("zstd", zstd(&zeros))] {
            let (all, largest) = decode(coding, &body, usize::MAX).unwrap();
            assert_eq!(all.len(), zeros.len(), "{coding}");
            assert!(largest <= (8 << 20) + OUTPUT_BYTES, "{coding}: {largest}");
        }
    }

    #[test]
    fn body_that_cannot_be_decoded_is_refused_by_the_name_of_its_coding() {
        for (coding, body) in [
            ("br", b"x".to_vec()),
            ("gzip, gzip", gzip(&gzip(b"x"))),
            (
                "gzip",
                [gzip(b"x"), b"no gzip at all, but long enough".to_vec()].concat(),
            ),
            ("deflate", [&zlib(&[7; 100])[..4], &[0xff; 50]].concat()),
            ("zstd", [zstd(b"x"), b"no zstd".to_vec()].concat()),
        ] {
            let error = decode(coding, &body, usize::MAX).unwrap_err();
            let named = format!("the content coding {coding}");
            assert!(error.to_string().contains(&named) && !error.is_transient(), "{error}");
        }
        let empty = gzip(b"").repeat(EMPTY_BYTES / gzip(b"").len() + 1);
        assert!(decode("gzip", &empty, usize::MAX).is_err());
        assert_eq!(decode("gzip", &empty[..EMPTY_BYTES / 2], usize::MAX).unwrap().0, b"");
    }
}
