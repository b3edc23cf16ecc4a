use upkeep::Retention;

use super::{section::Section, values};

/// Reads `retention`. Fields that are absent have the defaults of [`Retention`].
pub(crate) fn read(mut section: Section<'_>) -> Retention {
    let retention = Retention::of(
        section.parsed("generations", values::generations),
        section.parsed("days", values::days),
        section.parsed("grace", values::duration),
    );
    section.finish();
    retention
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::catalogs::ConfigLoader;

    #[test]
    fn retention_out_of_range_is_a_problem() {
        for (retention, part) in [
            (
                "{generations: 17}",
                "retention, generations: 17 is out of range: it must be from 0 to 16",
            ),
            ("{days: 1.5}", "retention, days: \"1.5\" is not a whole number"),
            ("{grace: soon}", "retention, grace: \"soon\" is not a duration"),
            ("{weeks: 3}", "unknown field weeks"),
        ] {
            let mut loader = ConfigLoader::new(Duration::from_secs(600));
            loader.text("file", &format!("retention: {retention}"));
            let problems = loader.finish().unwrap_err().to_string();
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
    }
}
