//! What was found out about this machine.

use super::SafeText;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, for people.
    pub subject: &'static str,
    /// How well it is.
    pub grade: Grade,
    /// What was found.
    pub finding: SafeText,
    /// What would help, where something is wrong.
    pub advice: Option<&'static str>,
}

/// How well something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    /// Nothing is wrong.
    Good,
    /// Something can be had that not everybody needs, and is not there.
    Optional,
    /// Something cannot be seen or done.
    Bad,
}

impl Check {
    /// Nothing is wrong.
    pub fn good(subject: &'static str, finding: impl Into<SafeText>) -> Self {
        Self { subject, grade: Grade::Good, finding: finding.into(), advice: None }
    }

    /// Something that not everybody needs is not there.
    pub fn optional(subject: &'static str, finding: impl Into<SafeText>) -> Self {
        Self { subject, grade: Grade::Optional, finding: finding.into(), advice: None }
    }

    /// Something cannot be seen or done.
    pub fn bad(subject: &'static str, finding: impl Into<SafeText>, advice: &'static str) -> Self {
        Self { subject, grade: Grade::Bad, finding: finding.into(), advice: Some(advice) }
    }
}

impl Grade {
    /// The word of `dn-top doctor`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Optional => "-",
            Self::Bad => "!",
        }
    }
}
