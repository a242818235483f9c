//! Theme files beside the configuration file.

use std::ffi::OsString;
use std::path::{Path, PathBuf, is_separator};

use super::{folder, read};
use crate::cli::exit::Failure;
use crate::model::SafeText;
use crate::ui::Theme;

/// Reads the theme in a file. A name without a folder is relative to the folder of the configuration file.
///
/// # Errors
/// The file cannot be read, belongs to another user or is invalid: one line that names it.
pub(in crate::cli) fn theme(file: &str) -> Result<Theme, Failure> {
    let path = match folder() {
        Some(folder) if !file.contains(is_separator) => folder.join(file),
        _ => PathBuf::from(file),
    };
    let name = SafeText::from_path(&path);
    let text = read(&path).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    Theme::from_toml(&text).map_err(|what| Failure::usage(format!("{name}: {}", SafeText::new(&what))))
}

/// Maximum number of theme files offered.
const MAX_THEMES: usize = 32;
/// Maximum number of files looked at: the folder may be another user's.
const MAX_FILES: usize = 4096;

/// Returns the themes in the files beside the configuration file, sorted by name; for one that is unusable, the error.
pub(in crate::cli) fn user_themes() -> Vec<(SafeText, Result<Theme, SafeText>)> {
    let mut names: Vec<String> = theme_files().into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    names.truncate(MAX_THEMES);
    let read = |name: String| (SafeText::new(&name), theme(&name).map_err(|failure| format!("{:#}", failure.error).into()));
    names.into_iter().map(read).collect()
}

/// Returns the names of the theme files beside the configuration file.
pub(in crate::cli) fn theme_files() -> Vec<OsString> {
    let files = folder().and_then(|folder| folder.read_dir().ok()).into_iter().flatten();
    let names = files.take(MAX_FILES).filter_map(|file| Some(file.ok()?.file_name()));
    names.filter(|name| name != "config.toml" && Path::new(name).extension().is_some_and(|ending| ending == "toml")).collect()
}
