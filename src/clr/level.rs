//! Names of event levels.

use crate::ipc::Level;

/// Parses a level given by name, ignoring case, or by number; numbers above the highest level are clamped to it.
pub fn parse_level(text: &str) -> Option<Level> {
    let by_name = Level::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
    by_name.or_else(|| Level::try_from(text.parse::<u32>().ok()?.min(Level::Verbose.number())).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_names_and_numbers_are_parsed() {
        let table = [
            ("logalways", Some(Level::LogAlways)),
            ("Critical", Some(Level::Critical)),
            ("ERROR", Some(Level::Error)),
            ("warning", Some(Level::Warning)),
            ("informational", Some(Level::Informational)),
            ("verbose", Some(Level::Verbose)),
            ("0", Some(Level::LogAlways)),
            ("4", Some(Level::Informational)),
            ("5", Some(Level::Verbose)),
            ("99", Some(Level::Verbose)),
            ("-1", None),
            ("info", None),
            ("", None),
        ];
        for (text, level) in table {
            assert_eq!(parse_level(text), level, "{text}");
        }
    }
}
