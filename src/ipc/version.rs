//! Runtime versions.

use std::fmt;

/// A runtime version as reported, such as `9.0.7` or `10.0.0-preview.3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuntimeVersion {
    text: String,
    major: u32,
    minor: u32,
}

impl RuntimeVersion {
    /// Parses a version; missing numbers are 0. Build metadata (`+commit`) is removed.
    pub fn new(text: &str) -> Self {
        let text = text.split('+').next().unwrap_or_default().trim();
        let mut numbers = text.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        Self { text: text.to_owned(), major: numbers.next().unwrap_or(0), minor: numbers.next().unwrap_or(0) }
    }

    /// Returns the major version: 3, 5 to 11.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Returns the minor version.
    pub fn minor(&self) -> u32 {
        self.minor
    }

    /// Returns the version text without build metadata.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for RuntimeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_versions_are_parsed() {
        let table = [
            ("9.0.7", 9, 0, "9.0.7"),
            ("9.0.7+3c298d9f00936d651cc47d221762474e25277672", 9, 0, "9.0.7"),
            ("10.0.0-preview.3.25171.5", 10, 0, "10.0.0-preview.3.25171.5"),
            ("11.1-rc", 11, 1, "11.1-rc"),
            ("3.1", 3, 1, "3.1"),
            ("", 0, 0, ""),
            ("next", 0, 0, "next"),
            ("99999999999.1", 0, 1, "99999999999.1"),
        ];
        for (input, major, minor, text) in table {
            let version = RuntimeVersion::new(input);
            assert_eq!((version.major(), version.minor(), version.as_str()), (major, minor, text));
        }
    }
}
