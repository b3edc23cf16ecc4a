use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors for everything but connections: listener, store, logs, files that a poll writes.
const OTHERS: u64 = 128;

/// Raises the limit of open files for this many connections, as far as the system allows, and returns the number of
/// connections that fit.
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
        None => wanted,
        Some(current) if current >= wanted => wanted,
        Some(current) => setrlimit(Resource::Nofile, raised).map_or(current, |()| allowed),
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
