//! Checks that loading the file of a startup hook or a profiler will not crash the runtime, before its path is sent.

use std::fs::File;
use std::io;
use std::path::Path;

use super::proc::Proc;
use super::served::SEPARATOR;
use crate::assembly::Assembly;

/// Checks the assembly of a startup hook; `Err` is the reason for a refusal, phrased as the end of a sentence.
pub(super) fn check(_: &Proc, _: u32, path: &str) -> Result<(), String> {
    if path.contains(SEPARATOR) {
        return Err(format!("has a '{SEPARATOR}' in its path, which separates startup hooks"));
    }
    if !Path::new(path).is_absolute() {
        return Err("is not an absolute path".to_owned());
    }
    let hook = Assembly::read(&mut open(path)?).map_err(|error| error.to_string())?;
    hook.startup_hook.problem().map_or(Ok(()), |problem| Err(problem.to_owned()))
}

/// Checks that the library of a profiler is a file.
pub(super) fn check_library(_: &Proc, _: u32, path: &str, must_exist: bool) -> Result<(), String> {
    match open(path) {
        Err(_) if !must_exist && !Path::new(path).exists() => Ok(()),
        opened => opened.map(drop),
    }
}

fn open(path: &str) -> Result<File, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be inspected ({error})"),
    };
    let file = super::files::open_named(Path::new(path)).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_file() { Ok(file) } else { Err("is not a regular file".to_owned()) }
}
