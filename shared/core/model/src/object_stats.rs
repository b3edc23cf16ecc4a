use std::ops::AddAssign;

use serde::Serialize;

/// Number and total size of some objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObjectStats {
    /// Number of objects, each counted once.
    pub objects: u64,
    /// Total size of their stored bytes.
    pub bytes: u64,
}

impl ObjectStats {
    /// Adds one object of `bytes` stored bytes.
    pub const fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

impl AddAssign for ObjectStats {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}
