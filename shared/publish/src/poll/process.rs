//! Identity of a process, to tell a pull that still runs beside this one from one whose process died.

use std::{fs, process};

/// Returns the identifier of a mirror in this process: number and start of the process, because the kernel uses numbers again, and
/// 52 random bits. The start is in clock ticks since boot, and 0 where `/proc` does not tell.
pub(super) fn process_id(random: f64) -> String {
    let number = process::id().into();
    let start = started(number).unwrap_or_default();
    format!("{number:x}.{start:x}.{:013x}", random.to_bits() & ((1 << 52) - 1))
}

/// True if the pull belongs to another process of this machine that still runs. A pull of another machine is never known to
/// run.
pub(super) fn runs_beside(id: &str) -> bool {
    let mut parts = id.split('.').map(|part| u64::from_str_radix(part, 16));
    let (Some(Ok(number)), Some(Ok(start)), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    // Another mirror in this process is one that ended.
    number != u64::from(process::id()) && started(number) == Some(start)
}

/// Returns the start of a running process (proc(5), field 22 of `/proc/PID/stat`); `None` if it ended or cannot be seen.
fn started(number: u64) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name of the program, in parentheses, may hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    // A killed process whose parent has not asked for its end yet is a zombie.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn pull_of_this_process_does_not_run_beside_it() {
        assert!(!runs_beside(&process_id(0.5)));
        for id in ["", "a", "1.2", "x.y.z", "0000000000000"] {
            assert!(!runs_beside(id), "{id}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pull_of_another_process_runs_until_that_ends() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = child.id().into();
        let start = started(number).unwrap();
        let id = format!("{number:x}.{start:x}.0");
        assert!(runs_beside(&id));
        assert!(
            !runs_beside(&format!("{number:x}.{:x}.0", start + 1)),
            "a later process"
        );
        child.kill().unwrap();
        // Not waited for: a zombie has ended.
        while started(number).is_some() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!runs_beside(&id));
        child.wait().unwrap();
    }
}
