//! Untrusted text made safe to display.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::text::safe_chars;

/// Maximum length of a text, in bytes: the kernel's limit for an argument or environment variable.
const MAX_TEXT_BYTES: usize = 128 << 10;

/// Text that is safe for a terminal, a path or the clipboard: one line without control and escape characters, without characters that reorder or
/// hide text, and of at most 128 KiB. Every constructor sanitizes, so values of this type need no further care.
///
/// Whitespace of any kind becomes a blank, other unsafe characters become U+FFFD. Truncated text ends with `…`. Clones share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafeText(Arc<str>);

impl SafeText {
    /// Sanitizes text.
    pub fn new(text: &str) -> Self {
        if text.len() <= MAX_TEXT_BYTES && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Self(text.into());
        }
        let mut clean = String::new();
        for c in safe_chars(text) {
            if clean.len() + c.len_utf8() > MAX_TEXT_BYTES {
                clean.push('…');
                break;
            }
            clean.push(c);
        }
        Self(clean.into())
    }

    /// Sanitizes bytes that may not be valid UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::new(&String::from_utf8_lossy(bytes))
    }

    /// Sanitizes a path.
    pub fn from_path(path: &Path) -> Self {
        Self::new(&path.to_string_lossy())
    }

    /// Sanitizes several lines, and joins those that are not blank.
    pub fn from_lines(text: &str) -> Self {
        Self::new(&text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" · "))
    }

    /// Returns the first characters, with `…` if some are left out.
    #[must_use]
    pub fn cut(self, longest: usize) -> Self {
        match self.char_indices().nth(longest) {
            Some((end, _)) => Self(format!("{}…", &self[..end]).into()),
            None => self,
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SafeText {
    fn default() -> Self {
        Self::new("")
    }
}

impl Deref for SafeText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for SafeText {
    fn as_ref(&self) -> &str {
        self
    }
}

impl Borrow<str> for SafeText {
    fn borrow(&self) -> &str {
        self
    }
}

impl From<&str> for SafeText {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for SafeText {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<SafeText> for String {
    fn from(text: SafeText) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq<str> for SafeText {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for SafeText {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Serialize for SafeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl fmt::Debug for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sanitize;
    use proptest::prelude::*;

    #[test]
    fn long_text_is_cut() {
        for (text, length) in [
            ("a".repeat(MAX_TEXT_BYTES), MAX_TEXT_BYTES),
            ("a".repeat(MAX_TEXT_BYTES + 1), MAX_TEXT_BYTES + 3),
            ("é".repeat(MAX_TEXT_BYTES), MAX_TEXT_BYTES + 3),
            ("\u{1b}".repeat(MAX_TEXT_BYTES), MAX_TEXT_BYTES + 1),
        ] {
            assert_eq!(SafeText::new(&text).len(), length, "{:?}", text.chars().next());
        }
        assert_eq!(SafeText::new("Größe").cut(3), "Grö…");
        assert_eq!(SafeText::new("Größe").cut(5), "Größe");
    }

    #[test]
    fn lines_are_joined_into_one() {
        assert_eq!(SafeText::from_lines(" one\r\n\n\ttwo\u{1b}\n"), "one · two\u{fffd}");
    }

    proptest! {
        #[test]
        fn random_bytes_become_safe_text(bytes: Vec<u8>) {
            let text = SafeText::from_bytes(&bytes);
            prop_assert_eq!(sanitize(&text), text.as_str());
            prop_assert_eq!(SafeText::from_lines(&String::from_utf8_lossy(&bytes)).lines().count() < 2, true);
        }
    }
}
