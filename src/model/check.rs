//! Findings about this machine.

use std::fmt;

use super::SafeText;

/// One check of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Display name of what was checked.
    pub subject: &'static str,
    /// Result.
    pub grade: Grade,
    /// What was found.
    pub finding: SafeText,
    /// How to fix a problem.
    pub advice: Option<&'static str>,
}

listed! {
/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// No problem.
    Good => "ok",
    /// An optional feature is missing.
    Optional => "-",
    /// Something cannot be observed or done.
    Bad => "!",
}
/// Returns the word printed by `dn-top doctor`.
pub fn word(self) -> &'static str;
}

impl Check {
    /// Creates a check without a problem.
    pub fn good(subject: &'static str, finding: impl Into<SafeText>) -> Self {
        Self { subject, grade: Grade::Good, finding: finding.into(), advice: None }
    }

    /// Creates a check of a missing optional feature.
    pub fn optional(subject: &'static str, finding: impl Into<SafeText>) -> Self {
        Self { subject, grade: Grade::Optional, finding: finding.into(), advice: None }
    }

    /// Creates a check of something that cannot be observed or done.
    pub fn bad(subject: &'static str, finding: impl Into<SafeText>, advice: &'static str) -> Self {
        Self { subject, grade: Grade::Bad, finding: finding.into(), advice: Some(advice) }
    }
}

/// What prevents something, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obstacle {
    /// What is in the way.
    pub what: &'static str,
    /// How to remove it.
    pub remedy: &'static str,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}
