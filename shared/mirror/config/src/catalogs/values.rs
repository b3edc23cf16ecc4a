//! Values of settings. Flags and `catalogs.yaml` share these parsers, so a value means the same in
//! both and is refused in both. An error says what can be written instead.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use bytesize::ByteSize;
use model::text::{is_unprintable, value_without_secrets};
use model::{Availability, PREVIOUS_MAX};
use source::TargetPlatform;

use crate::problems::{count, out_of_range};

/// Shortest poll interval. More polls than one a second would only burden the registry.
const POLL_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Shortest time limit. Below a millisecond every client would be too slow.
const TIME_LIMIT_MIN: Duration = Duration::from_millis(1);

/// Longest duration, a year. Far from the overflow of clocks, which a jittered wait of centuries
/// would reach.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Longest title of the page, in characters: more does not fit into the tab of a browser.
const TITLE_CHARS: usize = 80;

/// Largest size, 1 EiB. `bytesize` turns what overflows into `u64::MAX`, which is above it and so
/// is refused.
const SIZE_MAX: u64 = 1 << 60;

/// Parses the time between two polls, from 1 s to 365 days.
///
/// ```
/// use std::time::Duration;
/// use config::poll_interval;
///
/// assert_eq!(poll_interval("10m"), Ok(Duration::from_secs(600)));
/// assert_eq!(poll_interval("5 minutes"), Ok(Duration::from_secs(300)));
/// assert!(poll_interval("0s").is_err());
/// ```
///
/// # Errors
/// A text that is not a duration, and for one out of range.
pub fn poll_interval(text: &str) -> Result<Duration, String> {
    let range = POLL_INTERVAL_MIN..=DURATION_MAX;
    within(any_duration(text)?, text, range, "1s", "365d")
}

/// Parses a limit of time for clients, from 1 ms to 365 days.
///
/// # Errors
/// A text that is not a duration, and for one out of range.
pub fn time_limit(text: &str) -> Result<Duration, String> {
    let range = TIME_LIMIT_MIN..=DURATION_MAX;
    within(any_duration(text)?, text, range, "1ms", "365d")
}

/// Parses a duration of at most 365 days. Zero is a duration.
///
/// # Errors
/// A text that is not a duration, and for one out of range.
pub fn duration(text: &str) -> Result<Duration, String> {
    let range = Duration::ZERO..=DURATION_MAX;
    within(any_duration(text)?, text, range, "0s", "365d")
}

fn any_duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("{text:?} is not a duration: write a number and a unit, such as 30s, 10m or 24h")
    })
}

/// Parses `availabilityMode`.
///
/// # Errors
/// Another text. YAML 1.1 reads words such as `Off` as false.
pub(crate) fn availability(text: &str) -> Result<Availability, String> {
    match text {
        "Available" => Ok(Availability::Available),
        "Unavailable" => Ok(Availability::Unavailable),
        "true" | "false" => Err(format!(
            "write Available or Unavailable, not {text}, which On, Off, Yes and No are in YAML"
        )),
        _ => Err(format!("write Available or Unavailable, not {text:?}")),
    }
}

/// Parses a size in bytes, from 1 B to 1 EiB. `kB`, `MB`, `GB` are powers of 1000, `KiB`, `MiB`,
/// `GiB` of 1024.
///
/// ```
/// use config::byte_size;
///
/// assert_eq!(byte_size("700MB"), Ok(700_000_000));
/// assert_eq!(byte_size("4 GiB"), Ok(4 << 30));
/// assert_eq!(byte_size("512"), Ok(512));
/// assert!(byte_size("0").is_err());
/// ```
///
/// # Errors
/// A text that is not a size, and for one out of range.
pub fn byte_size(text: &str) -> Result<u64, String> {
    let ByteSize(bytes) = text.parse().map_err(|_| {
        format!("{text:?} is not a size: write a number of bytes, or one with a unit, such as 700MB or 4GiB")
    })?;
    within(bytes, text, 1..=SIZE_MAX, "1B", "1EiB")
}

/// Parses how many earlier publications of a catalog are kept, from 0 to 16. `current.json` names
/// no more.
///
/// # Errors
/// A text that is not a whole number, and for one out of range.
pub fn generations(text: &str) -> Result<usize, String> {
    count(text, 0..=PREVIOUS_MAX)
}

/// Parses for how many days an earlier publication is kept, from 0 to 36,500.
///
/// # Errors
/// A text that is not a whole number, and for one out of range.
pub fn days(text: &str) -> Result<u64, String> {
    count(text, 0..=36_500)
}

/// Checks a registry or another host, `HOST` or `HOST:PORT`, and returns it unchanged.
///
/// ```
/// use config::host_and_port;
///
/// assert!(host_and_port("registry.lab:5000").is_ok());
/// assert!(host_and_port("http://registry.lab:5000").is_err());
/// ```
///
/// # Errors
/// A URL, and anything else that would never match the host of a request.
pub fn host_and_port(text: &str) -> Result<String, String> {
    // An IPv6 address stands in brackets where a port may follow.
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let bare = host.strip_prefix('[');
    let is_host = match bare.and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_name(host),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if !is_host || !is_port {
        let shown = value_without_secrets(text);
        return Err(format!(
            "{shown:?} is not HOST or HOST:PORT, such as registry.example:5000"
        ));
    }
    Ok(text.to_owned())
}

fn is_name(host: &str) -> bool {
    !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

/// Checks an origin as browsers send it (RFC 6454, section 7), and returns it unchanged.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    if let Some(host) = host
        && host_and_port(host).is_ok()
        && !host.contains(|c: char| c.is_ascii_uppercase())
    {
        return Ok(text.to_owned());
    }
    let shown = value_without_secrets(text);
    Err(format!(
        "{shown:?} is not an origin, such as https://docs.example"
    ))
}

/// Checks the title of the page, and returns it unchanged.
pub(crate) fn title(text: &str) -> Result<String, String> {
    if text.chars().count() > TITLE_CHARS || text.contains(is_unprintable) {
        return Err(format!(
            "{text:?} is not one line of at most {TITLE_CHARS} characters"
        ));
    }
    Ok(text.to_owned())
}

/// Parses an address to listen on. A port alone is one of this machine's loopback address.
///
/// ```
/// use config::listen_address;
///
/// assert_eq!(listen_address("8080"), listen_address("127.0.0.1:8080"));
/// ```
///
/// # Errors
/// A text of another form.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.strip_prefix("localhost:").unwrap_or(text).parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| {
        format!("{text:?} is not ADDRESS:PORT or PORT, such as 127.0.0.1:8080, or 0.0.0.0:8080 for all addresses")
    })
}

/// Parses a platform, such as `linux/amd64` or `linux/arm/v7`.
///
/// # Errors
/// A text of another form.
pub fn platform(text: &str) -> Result<TargetPlatform, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let has_all = !parts.contains(&"");
    match parts[..] {
        [os, architecture] if has_all => Ok(TargetPlatform {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: String::new(),
        }),
        [os, architecture, variant] if has_all => Ok(TargetPlatform {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.to_owned(),
        }),
        _ => Err(format!("{text:?} is not OS/ARCH, such as linux/amd64")),
    }
}

fn within<T: PartialOrd>(
    value: T,
    text: &str,
    range: RangeInclusive<T>,
    min: &str,
    max: &str,
) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(out_of_range(text, min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_size_unit_decides_factor() {
        for (text, bytes) in [
            ("10", 10),
            ("700MB", 700_000_000),
            ("4GiB", 4 << 30),
            ("1 KiB", 1024),
            ("1.5GiB", 3 << 29),
            ("1EiB", 1 << 60),
        ] {
            assert_eq!(byte_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "GiB",
            "-1",
            "0",
            "5XB",
            "99999999999GiB",
            "18446744073709551615",
        ] {
            assert!(byte_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn poll_interval_out_of_range_is_refused() {
        for (text, is_ok) in [
            ("1s", true),
            ("365d", true),
            ("999ms", false),
            ("366d", false),
        ] {
            assert_eq!(poll_interval(text).is_ok(), is_ok, "{text}");
        }
        let error = poll_interval("0s").unwrap_err().to_string();
        assert_eq!(error, "0s is out of range: it must be from 1s to 365d");
        let error = poll_interval("1y").unwrap_err().to_string();
        assert_eq!(error, "1y is out of range: it must be from 1s to 365d");
        let error = poll_interval("soon").unwrap_err().to_string();
        assert!(error.starts_with("\"soon\" is not a duration: "), "{error}");
    }

    #[test]
    fn count_outside_range_is_refused() {
        assert_eq!(generations("16"), Ok(16));
        assert_eq!(generations("0"), Ok(0));
        for text in ["17", "-1", "2.5", "", "99999999999999999999999"] {
            assert!(generations(text).is_err(), "{text}");
        }
    }

    #[test]
    fn host_and_port_url_is_refused() {
        for text in "registry.lab|registry.lab:5000|10.0.0.1:80|[::1]:5000|[::1]".split('|') {
            assert!(host_and_port(text).is_ok(), "{text}");
        }
        for text in
            "|http://registry.lab:5000|registry.lab/ns|registry.lab:|a:0|a:70000|a b".split('|')
        {
            assert!(host_and_port(text).is_err(), "{text}");
        }
    }
}
