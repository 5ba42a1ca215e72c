//! Errors of a configuration, which stop the start, and warnings, which do not. Both have a place. Knows no keys.

use std::fmt;

/// All errors of a configuration, in the order of the file. They display as one line each.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// One error. It displays as `hostler.toml:12:3: message`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// Where it was written.
    pub place: SourcePlace,
    /// What is wrong, and what is accepted.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourcePlace {
    /// In the file as a whole: its name.
    File(String),
    /// At this line and column. Both start at 1; the column counts characters.
    Line(String, usize, usize),
    /// In this flag or environment variable.
    Named(String),
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) | Self::Named(name) => f.write_str(name),
            Self::Line(file, line, column) => write!(f, "{file}:{line}:{column}"),
        }
    }
}

/// Collects errors and warnings while a configuration is loaded, so that the user sees all of them at once.
#[derive(Debug, Default)]
pub struct Report {
    errors: Vec<ConfigError>,
    warnings: Vec<ConfigError>,
}

impl Report {
    /// Adds an error.
    pub fn error(&mut self, place: SourcePlace, message: impl Into<String>) {
        self.errors.push(ConfigError { place, message: message.into() });
    }

    /// Adds errors that were found elsewhere.
    pub fn add(&mut self, errors: ConfigErrors) {
        self.errors.extend(errors.0);
    }

    /// Adds a warning: the value is allowed, but probably a mistake.
    pub fn warn(&mut self, place: SourcePlace, message: impl Into<String>) {
        self.warnings.push(ConfigError { place, message: message.into() });
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The result and the warnings, or all errors.
    pub fn finish<T>(mut self, made: Option<T>) -> Result<(T, Vec<String>), ConfigErrors> {
        self.errors.sort_by(|a, b| a.place.cmp(&b.place));
        self.warnings.sort_by(|a, b| a.place.cmp(&b.place));
        match made.filter(|_| self.errors.is_empty()) {
            Some(made) => Ok((made, self.warnings.iter().map(ConfigError::to_string).collect())),
            None => Err(ConfigErrors(self.errors)),
        }
    }
}

/// The word of `known` that the user probably meant, if one is near enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerated = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerated)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
