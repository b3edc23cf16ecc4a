use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use work::ServerLimits;

/// Time in which a client must take some bytes of an answer while others wait for the memory that
/// it takes.
pub(crate) const HURRY: Duration = Duration::from_secs(3);

/// Checks of a connection within its shortest limit. A limit may be exceeded by a quarter.
pub(crate) const CHECKS: u32 = 4;

/// Longest time between two checks. Ten thousand idle connections that are checked each second take
/// 6 % of a processor.
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(3);

/// Returns the time between two checks of a connection, from 10 ms to 3 s.
pub(crate) fn check_interval(limits: &ServerLimits) -> Duration {
    let shortest = limits.first_request.min(limits.idle).min(limits.stalled);
    (shortest / CHECKS).clamp(Duration::from_millis(10), CHECK_INTERVAL_MAX)
}

/// File descriptors for everything but connections: listener, store, logs, files that a poll
/// writes.
const OTHERS: u64 = 128;

/// Raises the limit of open files for this many connections, as far as the system allows, and
/// returns the number of connections that fit.
///
/// The usual soft limit of 1,024 is too small for the default of 1,024 connections.
pub(crate) fn raise_limit(connections: usize) -> usize {
    // Two for each: the socket, and the object that is being sent.
    let wanted = 2 * connections as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = Rlimit {
        current: Some(allowed),
        maximum,
    };
    let available = match current {
        Some(current) if current < wanted => {
            setrlimit(Resource::Nofile, raised).map_or(current, |()| allowed)
        }
        _ => wanted,
    };
    let fit = usize::try_from(available.saturating_sub(OTHERS) / 2).unwrap_or(usize::MAX);
    fit.clamp(1, connections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raise_limit_returns_at_most_what_was_asked() {
        assert_eq!(raise_limit(16), 16);
        assert!((1..=usize::MAX / 4).contains(&raise_limit(usize::MAX / 4)));
    }
}
