//! A variable of a process's environment.

use super::secret::{holds_secret, is_secret_name};

/// One variable. Its text may be anything: it comes from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name, up to the first `=`.
    pub name: String,
    /// Value, all behind that.
    pub value: String,
    is_secret: bool,
}

impl Variable {
    /// Takes a time that grows with its length: whether it is a secret is found out here, and not each time that it is shown.
    pub fn new(name: String, value: String) -> Self {
        let is_secret = is_secret_name(&name) || holds_secret(&value);
        Self { name, value, is_secret }
    }

    /// Whether its name or its value is that of a secret: the value is masked until someone asks for it.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_make_a_secret() {
        for (name, value, secret) in [
            ("DB_PASSWORD", "", true),
            ("DATABASE_URL", "postgres://app:hush@db/shop", true),
            ("DATABASE_URL", "postgres://app@db/shop", false),
            ("PATH", "/usr/bin:/bin", false),
        ] {
            assert_eq!(Variable::new(name.to_owned(), value.to_owned()).is_secret(), secret, "{name}={value}");
        }
    }
}
