//! The environment of a process.

use super::secret::{contains_secret, is_secret_name};
use super::{SafeText, SecretPatterns};
use crate::ipc;

/// An environment variable, safe to display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name, up to the first `=`.
    pub name: SafeText,
    /// Value: everything after the first `=`.
    pub value: SafeText,
    is_secret: bool,
}

listed! {
/// Origin of the values of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentSource {
    /// The runtime: current values.
    Runtime => "runtime",
    /// The operating system: values at the start of the process. Used if the runtime is too old to report them.
    Startup => "startup",
}
/// Returns the name used in JSON.
pub fn name(self) -> &'static str;
}

/// The environment of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The variables.
    pub variables: Vec<Variable>,
    /// Origin of their values.
    pub source: EnvironmentSource,
}

impl Variable {
    /// Creates a variable. Takes time proportional to its length, because it determines whether it is secret, once instead of whenever it is
    /// displayed.
    pub fn new(raw: &ipc::Variable, secrets: &SecretPatterns) -> Self {
        let is_secret = is_secret_name(&raw.name) || secrets.matches(&raw.name) || contains_secret(&raw.value);
        Self { name: SafeText::new(&raw.name), value: SafeText::new(&raw.value), is_secret }
    }

    /// Whether the name or the value is secret: the value is masked until it is revealed.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str) -> Variable {
        Variable::new(&ipc::Variable { name: name.to_owned(), value: value.to_owned() }, &SecretPatterns::default())
    }

    #[test]
    fn secrets_are_detected_by_name_or_value() {
        for (name, value, secret) in [
            ("DB_PASSWORD", "", true),
            ("DATABASE_URL", "postgres://app:hush@db/shop", true),
            ("DATABASE_URL", "postgres://app@db/shop", false),
            ("PATH", "/usr/bin:/bin", false),
        ] {
            assert_eq!(variable(name, value).is_secret(), secret, "{name}={value}");
        }
    }

    #[test]
    fn patterns_extend_the_built_in_secret_detection() {
        let secrets = SecretPatterns::new(["*_DSN"]).unwrap();
        let is_secret = |name: &str| Variable::new(&ipc::Variable { name: name.to_owned(), value: String::new() }, &secrets).is_secret();
        assert_eq!(["SENTRY_DSN", "DB_PASSWORD", "PATH"].map(is_secret), [true, true, false]);
    }
}
