//! The default name and folder of the file of a recording, a heap or a dump.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use super::target_paths::file_stem;

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 128;
/// Maximum length of a file name without extension, in bytes: file systems allow 255 in total, and `.partial` and a number may follow.
const MAX_NAME_BYTES: usize = 200;

/// A pattern for file names without extension. It can only name plain files in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputName {
    /// Empty for the current folder.
    folder: PathBuf,
    pieces: Vec<Piece>,
}

/// A part of the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Name,
    Pid,
    Time,
    Kind,
}

impl Piece {
    const PLACEHOLDERS: [(&'static str, Self); 4] = [("name", Self::Name), ("pid", Self::Pid), ("time", Self::Time), ("kind", Self::Kind)];
}

impl Default for OutputName {
    fn default() -> Self {
        let line = || Piece::Text("_".to_owned());
        Self { folder: PathBuf::new(), pieces: vec![Piece::Name, line(), Piece::Pid, line(), Piece::Time] }
    }
}

impl OutputName {
    /// Parses a pattern with the placeholders `{name}` (of the process), `{pid}`, `{time}` (`yyyymmdd_hhmmss`) and `{kind}` (`trace`, `heap` or
    /// `dump`).
    ///
    /// # Errors
    /// The pattern is invalid: the reason as text.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("a name has 1 to {MAX_PATTERN_BYTES} bytes"));
        }
        if pattern.starts_with(['.', '-']) {
            return Err("a name must not begin with '.' or '-'".to_owned());
        }
        let (mut pieces, mut rest) = (Vec::new(), pattern);
        while let Some(first) = rest.chars().next() {
            if first == '{' {
                let (word, after) = rest[1..].split_once('}').ok_or("a '{' has no '}'")?;
                let known = Piece::PLACEHOLDERS.into_iter().find(|(name, _)| *name == word);
                let (_, piece) = known.ok_or_else(|| {
                    let word: String = word.chars().take(20).collect();
                    format!("there is no {{{word}}}: expected {{name}}, {{pid}}, {{time}} or {{kind}}")
                })?;
                pieces.push(piece);
                rest = after;
            } else if is_safe(first) {
                let end = rest.find(|c| !is_safe(c)).unwrap_or(rest.len());
                pieces.push(Piece::Text(rest[..end].to_owned()));
                rest = &rest[end..];
            } else {
                return Err("a name consists of letters, digits, '.', '-', '_' and placeholders such as {name}".to_owned());
            }
        }
        Ok(Self { folder: PathBuf::new(), pieces })
    }

    /// Returns the same pattern in another folder.
    #[must_use]
    pub fn in_folder(self, folder: PathBuf) -> Self {
        Self { folder, ..self }
    }

    /// Returns the folder of recordings and heap files; empty for the current one. Core dumps are written by the process itself, to a folder that
    /// it can access.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file for a process, with extension.
    pub fn path(&self, name: &str, pid: u32, stamp: impl Display, extension: &str) -> PathBuf {
        self.folder.join(self.file(name, pid, stamp, extension))
    }

    /// Whether names differ from one second to the next.
    pub fn has_time(&self) -> bool {
        self.pieces.contains(&Piece::Time)
    }

    /// Returns the name of a file for a process, with extension.
    pub fn file(&self, name: &str, pid: u32, stamp: impl Display, extension: &str) -> String {
        let mut file = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => file.push_str(text),
                Piece::Name => file.push_str(&file_stem(name)),
                Piece::Pid => file.push_str(&pid.to_string()),
                Piece::Time => file.push_str(&stamp.to_string()),
                Piece::Kind => file.push_str(match extension {
                    "gcdump" => "heap",
                    "dmp" => "dump",
                    _ => "trace",
                }),
            }
        }
        while file.len() > MAX_NAME_BYTES {
            file.pop();
        }
        format!("{file}.{extension}")
    }
}

impl Display for OutputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            placeholder => {
                let known = Piece::PLACEHOLDERS.iter().find(|(_, other)| other == placeholder);
                write!(f, "{{{}}}", known.map_or("", |(name, _)| name))
            }
        })
    }
}

/// Whether a character has no special meaning for shells and file systems.
fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAMP: &str = "20231114_221320";

    #[test]
    fn default_name_is_process_name_pid_and_time() {
        let name = OutputName::default();
        assert_eq!(name.file("Order.Service", 7, STAMP, "nettrace"), "Order.Service_7_20231114_221320.nettrace");
        assert_eq!(OutputName::parse(&name.to_string()), Ok(name));
    }

    #[test]
    fn placeholders_are_filled_in() {
        let name = OutputName::parse("prod-{kind}.{name}-{time}").unwrap();
        assert_eq!(name.to_string(), "prod-{kind}.{name}-{time}");
        assert_eq!(name.file("Web", 7, STAMP, "nettrace"), "prod-trace.Web-20231114_221320.nettrace");
        assert_eq!(name.file("Web", 7, STAMP, "gcdump"), "prod-heap.Web-20231114_221320.gcdump");
    }

    #[test]
    fn unsafe_name_patterns_are_rejected() {
        for (pattern, why) in [
            ("", "a name has 1 to 128 bytes"),
            ("a/{name}", "a name consists of letters"),
            ("..", "a name must not begin"),
            ("-o", "a name must not begin"),
            ("a\u{1b}", "a name consists of letters"),
            ("a b", "a name consists of letters"),
            ("{name", "a '{' has no '}'"),
            ("name}", "a name consists of letters"),
            ("{host}", "there is no {host}"),
        ] {
            assert!(OutputName::parse(pattern).unwrap_err().starts_with(why), "{pattern:?}");
        }
    }

    proptest! {
        #[test]
        fn any_process_name_yields_a_safe_file_name(pattern in "[a-z{}name._-]{1,20}|\\{name\\}x", name: String, pid: u32) {
            if let Ok(pattern) = OutputName::parse(&pattern) {
                let file = pattern.file(&name.repeat(40), pid, STAMP, "nettrace");
                prop_assert!(file.len() < 220 && !file.contains(['/', '\0']) && !file.starts_with(['.', '-']), "{}", file);
                prop_assert!(!file.chars().any(char::is_control));
            }
        }
    }
}
