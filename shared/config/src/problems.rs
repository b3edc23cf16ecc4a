use std::fmt;

/// Everything that is wrong with a configuration.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Notes what is wrong at a place: a file, a document in it, a field.
    pub(crate) fn add(&mut self, place: impl fmt::Display, problem: impl fmt::Display) {
        self.0.push(format!("{place}: {problem}"));
    }

    pub(crate) fn none_or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}
