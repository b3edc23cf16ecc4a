use std::fmt;

/// All problems of a configuration, each with the file, the document in it and the field.
#[derive(Debug, Default)]
pub struct ConfigProblems(Vec<String>);

impl ConfigProblems {
    /// Adds a problem. `place` names the file and the field, or the environment variable or flag.
    pub(crate) fn add(&mut self, place: impl fmt::Display, problem: impl fmt::Display) {
        self.0.push(format!("{place}: {problem}"));
    }

    /// Adds the error of a result, and returns its value otherwise.
    pub(crate) fn ok<T, E: fmt::Display>(&mut self, place: impl fmt::Display, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(place, error)).ok()
    }

    /// Returns the value if there are no problems.
    pub(crate) fn none_or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for ConfigProblems {}
