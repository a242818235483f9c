//! The version in the text of a runtime's library: `@(#)Version 4.700.22.11601 @Commit: ...`. Runtimes before .NET 6 do not report their
//! version, and the path of a self-contained application does not contain it.

use std::io::{self, Read};

use crate::ipc::RuntimeVersion;

const MARK: &[u8] = b"@(#)Version ";
/// Maximum length of a version.
const MAX_VERSION_BYTES: usize = 32;
/// Maximum bytes searched. Libraries have up to 10 MB.
const MAX_SEARCHED_BYTES: u64 = 32 << 20;
const CHUNK: usize = 256 << 10;

/// Searches a library for its version.
pub(super) fn find(library: impl Read) -> io::Result<Option<RuntimeVersion>> {
    let mut library = library.take(MAX_SEARCHED_BYTES);
    let mut window = Vec::with_capacity(CHUNK + MARK.len() + MAX_VERSION_BYTES);
    loop {
        let got = library.by_ref().take(CHUNK as u64).read_to_end(&mut window)?;
        let mut from = 0;
        while let Some(at) = window[from..].iter().position(|byte| *byte == MARK[0]) {
            from += at + 1;
            let Some(text) = window[from - 1..].strip_prefix(MARK) else { continue };
            // A version cut off here is found again with the next chunk.
            if (text.len() >= MAX_VERSION_BYTES || got == 0)
                && let Some(version) = read(&text[..text.len().min(MAX_VERSION_BYTES)])
            {
                return Ok(Some(version));
            }
        }
        if got == 0 {
            return Ok(None);
        }
        let keep = window.len().min(MARK.len() + MAX_VERSION_BYTES);
        window.drain(..window.len() - keep);
    }
}

/// Converts a file version in the runtime's own numbering: major, minor, patch with year in one number, day of the build. All of .NET Core 3 is
/// 4.700, then the year; the last servicing release of 3.0 was in 2020.
fn read(text: &[u8]) -> Option<RuntimeVersion> {
    let text = text.split(|byte| !byte.is_ascii_digit() && *byte != b'.').next()?;
    let numbers = std::str::from_utf8(text).ok()?.split('.').map(|number| number.parse::<u32>().ok());
    match numbers.collect::<Option<Vec<_>>>()?.as_slice() {
        [4, 700, year, _] if *year > 20 => Some(RuntimeVersion::new("3.1")),
        [4, 700, ..] => Some(RuntimeVersion::new("3.x")),
        [major @ 5..100, minor, patch, _] => Some(RuntimeVersion::new(&format!("{major}.{minor}.{}", patch / 100))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(library: &[u8]) -> Option<String> {
        find(library).unwrap().map(|version| version.to_string())
    }

    #[test]
    fn version_is_parsed_from_the_library_text() {
        for (text, expected) in [
            ("4.700.22.11601 @Commit: 0dee78f90fc80c0fa4390ac1ba519c679bd503a4", Some("3.1")),
            ("4.700.19.56402 @Commit: x", Some("3.x")),
            ("5.0.1722.21314 @Commit: x", Some("5.0.17")),
            ("8.0.3326.52219 @Commit: x", Some("8.0.33")),
            ("9.0.24.52809", Some("9.0.0")),
            ("4.6.26515.07", None),
            ("%s", None),
            ("", None),
        ] {
            let library = [&[0x7f; 300][..], MARK, text.as_bytes(), &[0; 300]].concat();
            assert_eq!(version(&library).as_deref(), expected, "{text}");
        }
        assert_eq!(version(b"@(#)Version 9.0.725.1").as_deref(), Some("9.0.7"), "at the very end");
    }

    #[test]
    fn version_text_is_found_at_any_offset() {
        let text = b"@(#)Version %s @(#)Version 8.0.3326.52219 @Commit: x";
        for before in (CHUNK - 100..CHUNK + 10).chain([3 * CHUNK - 20]) {
            let library = [&vec![b'@'; before][..], text, &[0; 50]].concat();
            assert_eq!(version(&library).as_deref(), Some("8.0.33"), "{before}");
        }
        assert_eq!(version(&vec![0; MAX_SEARCHED_BYTES as usize + 1]), None);
    }
}
