//! Captures: streams of real runtimes. Those in `tests/captures` are compressed.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// All captures in the repository.
pub(crate) const CAPTURES: [&str; 4] = ["net31-heavy", "net9-heavy-drops", "net9-heavy-norundown", "v6-record-trace-oncpu-offcpu"];

/// Returns the folder of captures and the figures expected of them: that in the repository, or one with captures that are too large for it.
pub(crate) fn captures() -> PathBuf {
    more_captures().unwrap_or_else(in_repository)
}

/// Returns the folder of further captures, if there is one.
pub(crate) fn more_captures() -> Option<PathBuf> {
    std::env::var_os("DN_TOP_CAPTURES").map(PathBuf::from)
}

pub(crate) fn in_repository() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "captures"].iter().collect()
}

/// Returns a capture in the repository.
pub(crate) fn capture(name: &str) -> Vec<u8> {
    unpack(&in_repository().join(format!("{name}.nettrace.xz")))
}

pub(crate) fn unpack(packed: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(packed).expect("a capture");
    xz2::read::XzDecoder::new(file).read_to_end(&mut bytes).expect("xz");
    bytes
}
