use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use serde::Serialize;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
/// Number of seconds between two counts of files, which take longer than the other samples.
const FILES_EVERY: usize = 5;

/// Process and store that are monitored during the run.
#[derive(Debug, Clone)]
pub(crate) struct ProcessMonitor {
    /// Id of the process that serves.
    pub(crate) process: u32,
    /// Folder of its store.
    pub(crate) store: PathBuf,
}

/// Samples, one per second.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Samples {
    /// Resident memory, in bytes.
    pub(crate) memory: Vec<u64>,
    /// Number of open file descriptors.
    pub(crate) descriptors: Vec<u64>,
    /// Number of files in the store, every fifth second.
    pub(crate) files: Vec<u64>,
}

/// Highest values of a run, to tell growth from noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trend {
    pub(crate) first_third: u64,
    pub(crate) last_third: u64,
    pub(crate) max: u64,
    /// True if the values did not grow; `None` if the run was too short to tell.
    pub(crate) flat: Option<bool>,
}

impl ProcessMonitor {
    /// Takes a sample every second until `end`.
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub(crate) async fn watch(&self, end: Instant) -> io::Result<Samples> {
        let mut samples = Samples::default();
        while Instant::now() < end {
            samples.memory.push(self.memory()?);
            samples.descriptors.push(self.descriptors()?);
            if samples.memory.len() % FILES_EVERY == 1 {
                samples.files.push(files(&self.store)?);
            }
            sleep(SECOND).await;
        }
        Ok(samples)
    }

    /// Returns `VmRSS` of proc(5), which is in kB, in bytes.
    fn memory(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes =
            line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes
            .map(|count| count << 10)
            .ok_or_else(|| io::Error::other("the process has ended"))
    }

    pub(crate) fn descriptors(&self) -> io::Result<u64> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process))?.count() as u64)
    }
}

impl Trend {
    /// Compares the last third of the values with the first, after a warm-up of a tenth. The values
    /// grow if the last third exceeds the first by more than so many hundredths and `more`.
    pub(crate) fn of(values: &[u64], is_long: bool, hundredths: u64, more: u64) -> Self {
        let warm = &values[values.len() / 10..];
        let third = warm.len() / 3;
        let highest = |values: &[u64]| values.iter().copied().max().unwrap_or_default();
        let (first_third, last_third) = (
            highest(&warm[..third.max(1).min(warm.len())]),
            highest(&warm[2 * third..]),
        );
        Self {
            first_third,
            last_third,
            max: highest(values),
            flat: is_long
                .then_some(last_third <= first_third + first_third * hundredths / 100 + more),
        }
    }
}

/// Counts files. A file that is removed meanwhile does not count.
fn files(folder: &Path) -> io::Result<u64> {
    let mut count = 0;
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => count += files(&entry.path())?,
            Ok(_) => count += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal values after a higher warm-up, with a peak in the middle and another last value.
    fn samples(last: u64) -> Vec<u64> {
        let mut values = vec![10; 90];
        values[..9].fill(50);
        values[45] = 99;
        values[89] = last;
        values
    }

    #[test]
    fn trend_compares_the_thirds_after_the_warm_up_and_keeps_the_peak() {
        let trend = |first_third, last_third, max, flat| Trend {
            first_third,
            last_third,
            max,
            flat,
        };
        for (values, is_long, hundredths, more, expected) in [
            (samples(10), true, 0, 0, trend(10, 10, 99, Some(true))),
            (samples(11), true, 0, 0, trend(10, 11, 99, Some(false))),
            (samples(11), false, 0, 0, trend(10, 11, 99, None)),
            (samples(12), true, 10, 1, trend(10, 12, 99, Some(true))),
            (samples(13), true, 10, 1, trend(10, 13, 99, Some(false))),
            (Vec::new(), true, 0, 0, trend(0, 0, 0, Some(true))),
        ] {
            assert_eq!(Trend::of(&values, is_long, hundredths, more), expected);
        }
    }
}
