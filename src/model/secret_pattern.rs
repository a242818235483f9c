//! User-defined patterns for secret names of environment variables, in addition to the built-in ones.

/// Maximum number of patterns.
const MAX_PATTERNS: usize = 64;
/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 128;

/// Patterns of names whose values are masked in addition. Built-in secrets always remain secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretPatterns(Vec<String>);

impl SecretPatterns {
    /// Creates case-insensitive patterns: a part of the name, or with `*` (any characters) or `?` (one character) the whole name.
    ///
    /// # Errors
    /// A pattern is invalid: the reason as text.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let patterns: Vec<&str> = patterns.into_iter().collect();
        if patterns.len() > MAX_PATTERNS {
            return Err(format!("there are {} patterns; {MAX_PATTERNS} is the maximum", patterns.len()));
        }
        match patterns.iter().find(|pattern| pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES) {
            Some(_) => Err(format!("a pattern has 1 to {MAX_PATTERN_BYTES} bytes")),
            None => Ok(Self(patterns.into_iter().map(str::to_uppercase).collect())),
        }
    }

    /// Whether a name matches one of the patterns. Takes time at most proportional to the product of the lengths.
    pub fn matches(&self, name: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let name: Vec<char> = name.to_uppercase().chars().collect();
        self.0.iter().any(|pattern| {
            let is_whole = pattern.contains(['*', '?']);
            let pattern = if is_whole { pattern.clone() } else { format!("*{pattern}*") };
            is_match(&pattern.chars().collect::<Vec<_>>(), &name)
        })
    }
}

/// Whether a pattern matches the whole name. Backtracks to the last `*` only: going further back never helps.
fn is_match(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                last_star = Some((at, in_name));
                at += 1;
            }
            Some(c) if *c == '?' || *c == name[in_name] => (at, in_name) = (at + 1, in_name + 1),
            _ => {
                let Some((star, begun)) = last_star else { return false };
                (at, in_name) = (star + 1, begun + 1);
                last_star = Some((star, in_name));
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn word_matches_part_of_a_name_and_glob_all_of_it() {
        for (pattern, name, secret) in [
            ("dsn", "SENTRY_DSN", true),
            ("dsn", "sentry_dsn_2", true),
            ("DSN", "SENTRY", false),
            ("*_DSN", "SENTRY_DSN", true),
            ("*_DSN", "SENTRY_DSN_2", false),
            ("acme__*__key?", "Acme__Billing__Key1", true),
            ("acme__*__key?", "Acme__Billing__Key", false),
            ("a*b*c", "axxbxxbxc", true),
            ("a*b*c", "axxbxxbx", false),
            ("*", "", true),
            ("*", "PATH", true),
            ("?", "", false),
            ("ß", "STRASSE", true),
        ] {
            assert_eq!(SecretPatterns::new([pattern]).unwrap().matches(name), secret, "{pattern} {name}");
        }
        assert!(!SecretPatterns::default().matches("SENTRY_DSN"));
    }

    #[test]
    fn pattern_count_and_length_are_limited() {
        assert!(SecretPatterns::new([""]).is_err());
        assert!(SecretPatterns::new(["x".repeat(129).as_str()]).is_err());
        assert!(SecretPatterns::new(["x".repeat(128).as_str()]).is_ok());
        assert!(SecretPatterns::new(["x"; 65]).is_err());
    }

    #[test]
    fn hostile_name_is_matched_quickly() {
        let patterns = SecretPatterns::new(["*a".repeat(60).as_str()]).unwrap();
        assert!(!patterns.matches(&format!("{}b", "a".repeat(20_000))));
    }

    proptest! {
        #[test]
        fn pattern_without_wildcards_matches_a_substring(name in "[A-Z_]{0,12}", part in "[a-z_]{1,3}") {
            let found = SecretPatterns::new([part.as_str()]).unwrap().matches(&name);
            prop_assert_eq!(found, name.contains(&part.to_uppercase()));
        }
    }
}
