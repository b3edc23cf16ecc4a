//! The rules of leader election, as client-go has them, so that catalogd and this program never
//! lead at the same time.

use std::time::{Duration, Instant};

use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

/// Time for which a Lease that is not renewed belongs to its holder: catalogd's, which OpenShift
/// recommends.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(137);
/// Time after which a leader that cannot renew its Lease stops. Shorter than [`LEASE_TIME`], for
/// clocks that run differently.
pub(crate) const RENEW_TIME: Duration = Duration::from_secs(107);
/// Time between two tries to acquire or renew.
pub(crate) const RETRY_TIME: Duration = Duration::from_secs(26);

/// The Lease as it was last seen, and the local time at which it changed.
///
/// The times in a Lease are by the clock of its holder, so they are compared for equality only.
#[derive(Debug, Default)]
pub(crate) struct SeenLease(Option<(LeaseSpec, Instant)>);

/// Decision about a Lease.
#[derive(Debug, PartialEq)]
pub(crate) enum LeaseDecision {
    /// Write this. The write must fail if another replica has written meanwhile.
    Write(Box<LeaseSpec>),
    /// The replica of this name leads.
    Wait(String),
}

impl SeenLease {
    /// Decides for the replica `me` about the Lease that was read now; `None` if there is none.
    pub(crate) fn decide(
        &mut self,
        found: Option<LeaseSpec>,
        me: &str,
        now: Instant,
        time: &MicroTime,
    ) -> LeaseDecision {
        let Some(found) = found else {
            self.0 = None;
            return LeaseDecision::Write(Box::new(held(me, time, time, 0)));
        };
        let since = match &self.0 {
            Some((known, since)) if *known == found => *since,
            _ => now,
        };
        self.0 = Some((found.clone(), since));
        let holder = found.holder_identity.as_deref().unwrap_or_default();
        let transitions = found.lease_transitions.unwrap_or_default();
        if holder == me {
            let acquired = found.acquire_time.as_ref().unwrap_or(time);
            return LeaseDecision::Write(Box::new(held(me, acquired, time, transitions)));
        }
        // The holder decides how long its Lease is valid.
        let seconds = found.lease_duration_seconds.unwrap_or_default().max(0);
        let valid = Duration::from_secs(seconds.unsigned_abs().into());
        if !holder.is_empty() && now < since + valid {
            return LeaseDecision::Wait(holder.to_owned());
        }
        LeaseDecision::Write(Box::new(held(
            me,
            time,
            time,
            transitions.saturating_add(1),
        )))
    }
}

fn held(me: &str, acquired: &MicroTime, renewed: &MicroTime, transitions: i32) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(LEASE_TIME.as_secs()).ok(),
        acquire_time: Some(acquired.clone()),
        renew_time: Some(renewed.clone()),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    }
}

/// Returns the Lease as its holder leaves it at a clean stop: free, and with a duration that the
/// API server accepts.
pub(crate) fn released(spec: LeaseSpec, time: &MicroTime) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(time.clone()),
        renew_time: Some(time.clone()),
        ..spec
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn time(second: i64) -> MicroTime {
        MicroTime(Timestamp::from_second(second).unwrap())
    }

    fn written(decision: LeaseDecision) -> LeaseSpec {
        match decision {
            LeaseDecision::Write(spec) => *spec,
            LeaseDecision::Wait(holder) => panic!("waits for {holder}"),
        }
    }

    #[test]
    fn lease_that_is_absent_or_released_is_taken_at_once() {
        let mut seen = SeenLease::default();
        let mut take = |found| written(seen.decide(found, "me", Instant::now(), &time(9)));
        assert_eq!(take(None), held("me", &time(9), &time(9), 0));
        let released = released(held("other", &time(1), &time(2), 4), &time(3));
        assert_eq!(take(Some(released)), held("me", &time(9), &time(9), 5));
    }

    #[test]
    fn own_lease_is_renewed_and_keeps_its_start() {
        let found = held("me", &time(1), &time(2), 4);
        let spec =
            written(SeenLease::default().decide(Some(found), "me", Instant::now(), &time(9)));
        assert_eq!(spec, held("me", &time(1), &time(9), 4));
    }

    #[test]
    fn lease_of_another_is_taken_after_its_time_without_a_change() {
        let (start, mut seen) = (Instant::now(), SeenLease::default());
        let mut decide = |renewed, seconds| {
            let found = held("other", &time(1), &time(renewed), 4);
            seen.decide(
                Some(found),
                "me",
                start + Duration::from_secs(seconds),
                &time(9),
            )
        };
        let waits = LeaseDecision::Wait("other".to_owned());
        // However old its times are: the clock of its holder may be wrong. The third one was
        // renewed meanwhile.
        for (renewed, seconds) in [(2, 0), (2, 136), (3, 137), (3, 137 + 136)] {
            assert_eq!(decide(renewed, seconds), waits, "{renewed} {seconds}");
        }
        assert_eq!(
            written(decide(3, 137 + 137)),
            held("me", &time(9), &time(9), 5)
        );
    }
}
