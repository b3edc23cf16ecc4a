use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// How often, and for how long, something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The shortest wait.
    pub first: Duration,
    /// The longest wait that is made up here.
    pub longest: Duration,
    /// How many attempts there are at most; `None` if only the time ends them.
    pub attempts: Option<usize>,
    /// The time from the beginning to the end of the last wait.
    pub total: Duration,
}

/// The waits between the attempts of one request.
#[derive(Debug)]
pub struct Waits {
    delays: ExponentialBackoff,
    deadline: Instant,
}

impl Waits {
    /// Those of a request that is made for the first time now.
    pub fn new(schedule: &Schedule) -> Self {
        let delays = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(schedule.first)
            .with_max_delay(schedule.longest);
        let delays = match schedule.attempts {
            Some(attempts) => delays.with_max_times(attempts.saturating_sub(1)),
            None => delays.without_max_times(),
        };
        Self {
            delays: delays.build(),
            deadline: Instant::now() + schedule.total,
        }
    }

    /// When all has to be over.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long to wait before the next attempt, `asked` being what `Retry-After` says; `None` if there is to be none.
    pub fn after(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let delay = self.delays.next()?;
        // Never sooner than asked, and some jitter on top, lest all clients come back at once.
        let delay = asked.map_or(delay, |asked| asked.saturating_add(delay / 4));
        // Compared as durations: what a server asks for may lie beyond what the clock can hold.
        (delay <= self.deadline.saturating_duration_since(Instant::now())).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    const SCHEDULE: Schedule = Schedule {
        first: SECOND,
        longest: Duration::from_secs(4),
        attempts: Some(6),
        total: Duration::from_secs(60),
    };

    /// All waits of a request to which nobody says when to come back.
    async fn all(schedule: &Schedule) -> Vec<Duration> {
        let mut waits = Waits::new(schedule);
        let mut all = Vec::new();
        while let Some(wait) = waits.after(None) {
            tokio::time::sleep(wait).await;
            all.push(wait);
        }
        all
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_longest_as_often_as_there_are_attempts() {
        let all = all(&SCHEDULE).await;
        assert_eq!(all.len(), 5, "six attempts have five waits between them");
        for (wait, least) in all.iter().zip([1, 2, 4, 4, 4]) {
            let least = least * SECOND;
            assert!(*wait >= least && *wait <= 2 * least, "{all:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_as_many_waits_as_there_is_time_for() {
        let schedule = Schedule {
            attempts: None,
            ..SCHEDULE
        };
        let all = all(&schedule).await;
        let total: Duration = all.iter().sum();
        // The next would take at most eight seconds.
        assert!(total > 52 * SECOND && total <= schedule.total, "{all:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_asked_sooner_than_it_wants_nor_after_the_deadline() {
        let asked = |seconds| Waits::new(&SCHEDULE).after(Some(seconds));
        let wait = asked(20 * SECOND).unwrap();
        assert!(wait >= 20 * SECOND && wait <= 21 * SECOND, "{wait:?}");
        assert_eq!(asked(61 * SECOND), None);
        assert_eq!(asked(Duration::MAX), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_is_that_of_the_first_attempt() {
        let mut waits = Waits::new(&SCHEDULE);
        let deadline = waits.deadline();
        assert_eq!(deadline, Instant::now() + SCHEDULE.total);
        tokio::time::sleep(59 * SECOND).await;
        assert_eq!(waits.after(None), None);
        assert_eq!(waits.deadline(), deadline);
    }

    #[test]
    fn one_attempt_or_none_is_not_repeated() {
        for attempts in [0, 1] {
            let attempts = Some(attempts);
            assert_eq!(Waits::new(&Schedule { attempts, ..SCHEDULE }).after(None), None);
        }
    }
}
