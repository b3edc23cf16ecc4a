use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
/// Counting files takes longer than all else.
const FILES_EVERY: usize = 5;

/// What is looked at while visitors come.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    /// The process that serves.
    pub(crate) process: u32,
    /// Its store.
    pub(crate) store: PathBuf,
}

/// What was seen, second by second.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Seen {
    /// Resident memory in bytes.
    pub(crate) memory: Vec<u64>,
    /// Open descriptors.
    pub(crate) descriptors: Vec<u64>,
    /// Files of the store, every fifth second.
    pub(crate) files: Vec<u64>,
}

/// The highest value at the beginning and at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Course {
    pub(crate) first_third: u64,
    pub(crate) last_third: u64,
    pub(crate) max: u64,
    /// Whether it stayed as it was. Unknown if there was too little time for that.
    pub(crate) flat: Option<bool>,
}

impl Watched {
    /// Looks until then.
    ///
    /// # Errors
    /// The process is not there any more.
    pub(crate) async fn watch(&self, end: Instant) -> io::Result<Seen> {
        let mut seen = Seen::default();
        while Instant::now() < end {
            seen.memory.push(self.memory()?);
            seen.descriptors.push(self.descriptors()?);
            if seen.memory.len() % FILES_EVERY == 1 {
                seen.files.push(files(&self.store)?);
            }
            sleep(SECOND).await;
        }
        Ok(seen)
    }

    /// `VmRSS` of proc(5), which is in kB.
    fn memory(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kilobytes
            .map(|count| count << 10)
            .ok_or_else(|| io::Error::other("the process has ended"))
    }

    pub(crate) fn descriptors(&self) -> io::Result<u64> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process))?.count() as u64)
    }
}

impl Course {
    /// Judges what was seen after a warm-up of a tenth: the last third must not exceed the first by more than so many
    /// hundredths and `more`.
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
            flat: is_long.then_some(last_third <= first_third + first_third * hundredths / 100 + more),
        }
    }
}

/// What is removed meanwhile does not count.
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

    fn flat(values: &[u64], hundredths: u64, more: u64) -> Option<bool> {
        Course::of(values, true, hundredths, more).flat
    }

    #[test]
    fn what_grows_is_not_flat() {
        let growing: Vec<u64> = (0..900).map(|second| 100 + second / 10).collect();
        assert_eq!(flat(&growing, 10, 8), Some(false));
        let steady: Vec<u64> = (0..900).map(|second| 100 + second % 7).collect();
        assert_eq!(flat(&steady, 10, 0), Some(true));
        assert_eq!(Course::of(&growing, false, 10, 8).flat, None);
    }

    #[test]
    fn a_warm_up_is_passed_over_and_a_peak_in_between_is_told() {
        let mut values = vec![10; 90];
        values[..9].fill(0);
        values[45] = 99;
        let course = Course::of(&values, true, 0, 0);
        assert_eq!((course.first_third, course.last_third, course.max), (10, 10, 99));
        assert_eq!(course.flat, Some(true));
        values[89] = 11;
        assert_eq!(flat(&values, 0, 0), Some(false));
    }

    #[test]
    fn nothing_seen_has_not_grown() {
        assert_eq!(flat(&[], 0, 0), Some(true));
    }
}
