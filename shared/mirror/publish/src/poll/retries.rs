use model::text::{Chain, chain};

use crate::{Env, PollError, RaceRetries};

/// Maximum number of attempts of one poll after lost races, the first included.
const ATTEMPTS: u32 = 6;

/// Attempts of one poll: it starts again while another writer is faster, and once if a published
/// object turns out to be damaged.
pub(super) struct Retries<'a> {
    env: &'a Env,
    races: RaceRetries<'a>,
    has_inputs: bool,
    /// True if the next attempt must rely on nothing that is stored.
    pub(super) recheck: bool,
}

impl<'a> Retries<'a> {
    /// Allows the attempts of a poll that rechecks what is stored from the first one on, or not.
    pub(super) fn new(env: &'a Env, recheck: bool, has_inputs: bool) -> Self {
        Self {
            env,
            races: RaceRetries::new(env, ATTEMPTS),
            has_inputs,
            recheck,
        }
    }

    /// Waits before the next attempt. After damage there is one that writes it again from the
    /// source; from then on damage counts as a lost race.
    ///
    /// # Errors
    /// The error of the attempt, if there is no next one.
    pub(super) async fn again(&mut self, error: PollError) -> Result<(), PollError> {
        if error.is_damage() && !self.recheck {
            tracing::warn!(
                error = %Chain(&error),
                "the published state is damaged: it is written again from the source"
            );
            self.recheck = true;
            self.races = RaceRetries::new(self.env, ATTEMPTS);
            return Ok(());
        }
        match self.races.again(error).await {
            // Its own objects are written again, so this one is of an input, which only the input's
            // source can mend.
            Err(error) if error.is_damage() && self.has_inputs => Err(PollError::Waiting {
                input: "an input whose objects are damaged".to_owned(),
                reason: chain(&error),
            }),
            retried => retried,
        }
    }
}
