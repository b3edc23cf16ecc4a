use std::fmt;

use model::{CatalogName, Ring, Snapshot};

use crate::RingRule;

/// Ring as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingSource {
    /// Name of the catalog that is followed.
    pub of: CatalogName,
    /// Delay.
    pub rule: RingRule,
    /// Names of packages that are taken at once.
    pub now: Vec<String>,
}

/// Packages that a ring takes at once, compared with those of its state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RingPackages {
    /// Names of those that have another content in the newest state of the source.
    pub newer: Vec<String>,
    /// Faults of the names: packages that the source lacks.
    pub notices: Vec<String>,
}

impl RingSource {
    /// Compares the packages that are taken at once. One that the source has lost stays as it is in
    /// the state of the ring: that it is gone is no correction.
    pub fn packages(&self, state: &Snapshot, newest: &Snapshot) -> RingPackages {
        let mut packages = RingPackages::default();
        for name in &self.now {
            let Some(shard) = newest.package(name) else {
                let of = &self.of;
                let notice = format!("ring.now names {name}, which {of} does not have");
                packages.notices.push(notice);
                continue;
            };
            let own = state.package(name);
            if own.is_none_or(|own| own.lines != shard.lines) {
                packages.newer.push(name.clone());
            }
        }
        packages
    }

    /// Returns what a ring tells that has no state yet; `None` if it has one.
    pub fn first_notice(&self, ring: &Ring) -> Option<String> {
        if !ring.is_placeholder {
            return None;
        }
        let of = &self.of;
        let when = match ring.next_at() {
            Some(next) => {
                let next = humantime::format_rfc3339_seconds(next);
                format!("before {next}, when a state of {of} is old enough")
            }
            None => "yet".to_owned(),
        };
        Some(format!(
            "it serves nothing {when}; `catalog-mirror promote` takes the newest state of {of} now"
        ))
    }
}

impl fmt::Display for RingSource {
    /// Writes `ring:` with the followed catalog and the settings, so that a changed ring has another
    /// text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ring:{}", self.of)?;
        if let Some(after) = self.rule.after {
            let seconds = after.as_secs();
            let units = [(24 * 3600, "d"), (3600, "h"), (60, "m")];
            let fits = units.iter().find(|(unit, _)| seconds % unit == 0);
            let (unit, name) = fits.unwrap_or(&(1, "s"));
            write!(f, "+{}{name}", seconds / unit)?;
        }
        if self.rule.is_manual {
            f.write_str("+manual")?;
        }
        if !self.now.is_empty() {
            write!(f, "+now:{}", self.now.join(","))?;
        }
        Ok(())
    }
}
