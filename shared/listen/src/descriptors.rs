use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the program has open besides: the listener, the store's folder, logs, files that are written by a poll.
const OTHERS: u64 = 128;

/// Lets the process have as many files open as so many connections need, each with an object that it reads, as far as
/// the system allows; the customary soft limit of 1,024 is less. Returns how many connections fit.
pub(crate) fn room_for(connections: usize) -> usize {
    let wanted = 2 * connections as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let allowed = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = Rlimit {
        current: Some(allowed),
        maximum,
    };
    let have = match current {
        None => wanted,
        Some(current) if current >= wanted => wanted,
        Some(current) => setrlimit(Resource::Nofile, raised).map_or(current, |()| allowed),
    };
    let fit = usize::try_from(have.saturating_sub(OTHERS) / 2).unwrap_or(usize::MAX);
    fit.clamp(1, connections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_as_many_as_the_system_allows() {
        assert_eq!(room_for(16), 16);
        assert!((1..=usize::MAX / 4).contains(&room_for(usize::MAX / 4)));
    }
}
