//! Demangling of C++ function names.

use std::fmt;
use std::time::{Duration, Instant};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer names are truncated: a short mangled name in a hostile file may expand to any length.
const MAX_NAME_BYTES: usize = 400;

/// Longest mangled name that is parsed, in bytes: parsing a longer one can take any time.
const MAX_MANGLED_BYTES: usize = 512;
/// Time for the names of a process. 10,000 names of a real program take 0.1 s; one of a hostile file takes up to 0.2 s, and there can be millions.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Demangles the names of a process until their time is used up.
#[derive(Debug)]
pub(super) struct Demangler {
    left: Duration,
}

impl Demangler {
    pub(super) fn new() -> Self {
        Self { left: MAX_TIME }
    }

    /// Returns the demangled name of a C++ function without its parameters, or any other name as stored in the file. Not sanitized.
    pub(super) fn readable(&mut self, name: &[u8]) -> String {
        if self.left.is_zero() || name.len() > MAX_MANGLED_BYTES {
            return as_stored(name);
        }
        let began = Instant::now();
        let readable = readable(name);
        self.left = self.left.saturating_sub(began.elapsed());
        readable
    }
}

/// A string of bounded length.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > MAX_NAME_BYTES { Err(fmt::Error) } else { Ok(()) }
    }
}

fn readable(name: &[u8]) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut text = Bounded(String::new());
    if name.starts_with(b"_Z")
        && let Ok(symbol) = Symbol::new(name)
    {
        let whole = symbol.structured_demangle(&mut text, &options).is_ok();
        if whole || text.0.len() > MAX_NAME_BYTES {
            return cut(text.0);
        }
    }
    as_stored(name)
}

fn as_stored(name: &[u8]) -> String {
    cut(String::from_utf8_lossy(name).into_owned())
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_NAME_BYTES {
        text.truncate((0..=MAX_NAME_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_become_readable() {
        for (name, expected) in [
            ("memcpy", "memcpy"),
            ("_ZN3WKS7gc_heap10mark_phaseEii", "WKS::gc_heap::mark_phase"),
            ("_ZN3Foo3barIiEEvT_", "Foo::bar<int>"),
            ("_Zwhatever", "_Zwhatever"),
            ("", ""),
        ] {
            assert_eq!(readable(name.as_bytes()), expected);
        }
        assert_eq!(readable(&[0xff]), "\u{fffd}");
    }

    #[test]
    fn names_are_demangled_within_limits() {
        let mut demangler = Demangler::new();
        let name = |parameters| format!("_ZN3Foo3barIiEEvT_{}", "i".repeat(parameters)).into_bytes();
        assert_eq!(demangler.readable(&name(1)), "Foo::bar<int>");
        assert_eq!(demangler.readable(&name(MAX_MANGLED_BYTES)), as_stored(&name(MAX_MANGLED_BYTES)));
        assert!(demangler.left < MAX_TIME);
        demangler.left = Duration::ZERO;
        assert_eq!(demangler.readable(&name(1)).into_bytes(), name(1));
    }

    #[test]
    fn exponentially_growing_names_are_truncated() {
        // Each S_ stands for everything before it.
        let name = format!("_Z1fI{}EvT_", "1AIS_S_E".repeat(100));
        assert!(readable(name.as_bytes()).len() <= 2 * MAX_NAME_BYTES);
        assert!(readable(&b"x".repeat(5000)).len() < MAX_NAME_BYTES + 4);
    }
}
