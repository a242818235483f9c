//! Copies of text from a stream, which borrows it.

use crate::wire::Utf16;

/// Replaces a text by the first characters of another, in the same memory.
pub(super) fn copy(into: &mut String, text: Utf16<'_>, most: usize) {
    into.clear();
    into.extend(text.chars().take(most));
}

/// The first characters of a text.
pub(super) fn start_of(text: Utf16<'_>, most: usize) -> String {
    text.chars().take(most).collect()
}
