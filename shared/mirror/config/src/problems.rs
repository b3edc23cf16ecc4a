//! Problems of settings, which are all found at once, and the environment variables of functions.

use std::error::Error;
use std::{cell::RefCell, fmt, ops::RangeInclusive, rc::Rc, str::FromStr};

use model::text::{chain, shown_error};

/// All problems of a configuration, each with the file, the document in it and the field.
#[derive(Debug, thiserror::Error)]
#[error("the configuration cannot be used:\n  {}", .0.join("\n  "))]
pub struct ConfigProblems(Vec<String>);

/// Returns the text of an error that ends a program: the problems of a configuration on a line
/// each, any other error on one line.
pub fn failure(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<ConfigProblems>() {
        Some(problems) => problems.to_string(),
        None => chain(error),
    }
}

/// Collector of problems. Its clones collect into one list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Problems(Rc<RefCell<Vec<String>>>);

impl Problems {
    /// Adds a problem. `place` names the file and the field, or the environment variable or flag.
    pub(crate) fn add(&self, place: impl fmt::Display, problem: impl fmt::Display) {
        let problem = shown_error(&format!("{place}: {problem}"));
        self.0.borrow_mut().push(problem);
    }

    /// Adds the error of a result, and returns its value otherwise.
    pub(crate) fn ok<T, E: fmt::Display>(
        &self,
        place: impl fmt::Display,
        result: Result<T, E>,
    ) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(place, error);
                None
            }
        }
    }

    /// Returns the value if there are no problems.
    pub(crate) fn none_or<T>(&self, value: T) -> Result<T, ConfigProblems> {
        let all = self.0.take();
        if !all.is_empty() {
            return Err(ConfigProblems(all));
        }
        Ok(value)
    }
}

/// Environment variables that are read one by one. A blank one counts as absent: a parameter of a
/// template that was left out becomes an empty variable.
pub struct Variables<G> {
    pub(crate) get: G,
    pub(crate) problems: Problems,
}

impl<G: Fn(&str) -> Option<String>> Variables<G> {
    /// Reads through `get`, and collects problems of its own.
    pub fn new(get: G) -> Self {
        let problems = Problems::default();
        Self { get, problems }
    }

    /// Returns the value of a variable; `None` if it is absent.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.get)(name).filter(|text| !text.trim().is_empty())
    }

    /// Parses a variable. A problem counts as an absent one until [`Self::finish`].
    pub fn parsed<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(name)?;
        self.problems.ok(name, parse(text.trim()))
    }

    /// Parses a variable that must be there.
    pub fn required<T, E: fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if self.text(name).is_none() {
            self.problems.add(name, "is not set");
        }
        self.parsed(name, parse)
    }

    /// Parses a number within a range.
    pub fn number<T: FromStr + PartialOrd + fmt::Display>(
        &self,
        name: &str,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        self.parsed(name, |text| count(text, range))
    }

    /// Returns an error if there are problems.
    ///
    /// # Errors
    /// All problems, each with the name of its variable.
    pub fn finish(&self) -> Result<(), ConfigProblems> {
        self.problems.none_or(())
    }
}

/// Parses a whole number within a range.
pub(crate) fn count<T: FromStr + PartialOrd + fmt::Display>(
    text: &str,
    range: RangeInclusive<T>,
) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(format!("{text:?} is not a whole number"));
    }
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        // Digits that do not fit the type are a number that is too large.
        _ => Err(out_of_range(text, range.start(), range.end())),
    }
}

pub(crate) fn out_of_range(value: &str, min: impl fmt::Display, max: impl fmt::Display) -> String {
    let max = max.to_string();
    if max == u64::MAX.to_string() {
        return format!("{value} is out of range: it must be at least {min}");
    }
    format!("{value} is out of range: it must be from {min} to {max}")
}
