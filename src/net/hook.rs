//! Checks, before its path is sent, that the file of a startup hook or profiler will not crash the runtime.
//!
//! .NET 9 and 10 end with an unhandled exception when a hook does not load, .NET 8 only if it was suspended at startup. The file is inspected as
//! the process sees it; what its method does is not checked.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::file::{open_in, open_regular_in};
use super::proc::{MappedFile, Proc, is_assembly};
use crate::assembly::{Assembly, Machine};

/// Machine type of assemblies that are compiled only for this machine (PE format, "Machine Types").
const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(0x8664)
} else if cfg!(target_arch = "aarch64") {
    Some(0xaa64)
} else {
    None
};
const MAX_FOLDERS: usize = 64;

/// Checks the assembly of a startup hook; `Err` is the problem, phrased as the end of a sentence.
pub(super) fn check(proc: &Proc, pid: u32, path: &str) -> Result<(), String> {
    if path.contains(':') {
        return Err("has a ':' in its path, which separates startup hooks".to_owned());
    }
    let hook = read(proc, pid, path)?;
    if let Some(problem) = hook.startup_hook.problem() {
        return Err(problem.to_owned());
    }
    if matches!(hook.machine, Machine::Only(machine) if Some(machine) != MACHINE) {
        return Err("is compiled for another processor architecture".to_owned());
    }
    check_against_loaded(proc, pid, &hook)
}

/// Checks that the process has no other assembly with the hook's name, loaded or in a folder it loads from, and that its runtime is as new as the
/// hook requires.
fn check_against_loaded(proc: &Proc, pid: u32, hook: &Assembly) -> Result<(), String> {
    let file_name = format!("{}.dll", hook.name);
    // If they cannot be listed, only the program's own folders are searched.
    let mapped = proc.mapped_files(pid).unwrap_or_default();
    let same_name = |file: &&MappedFile| file.path.file_name().is_some_and(|name| *name == *file_name);
    if mapped.iter().filter(same_name).any(|file| file.is_deleted) {
        return Err(format!("has the name of the assembly {}, which is loaded and whose file has been replaced", hook.name));
    }
    let folder = |file: PathBuf| file.parent().map(Path::to_owned);
    let mut folders: Vec<_> = mapped.into_iter().filter(|file| is_assembly(&file.path)).filter_map(|file| folder(file.path)).collect();
    // A starting program has not mapped its assembly yet.
    folders.extend(program_files(proc, pid).into_iter().filter_map(folder));
    folders.sort();
    folders.dedup();
    folders.truncate(MAX_FOLDERS);
    let find = |folder: &Path, name: &str| Assembly::read(&mut open_regular_in(proc, pid, &folder.join(name)).ok()?).ok();
    for folder in &folders {
        if !hook.name.contains('/') && find(folder, &file_name).is_some_and(|found| found.mvid != hook.mvid) {
            return Err(format!("has the name of another assembly of the process, {}", folder.join(file_name).display()));
        }
        if let (Some(wanted), Some(runtime)) = (hook.system_runtime, find(folder, "System.Runtime.dll"))
            && wanted > runtime.version
        {
            return Err(format!("is compiled for .NET {}, and the process runs .NET {}", wanted[0], runtime.version[0]));
        }
    }
    Ok(())
}

/// Returns the assemblies on the command line of a process, and its executable file: the program's assembly is one of them, or in the same folder.
fn program_files(proc: &Proc, pid: u32) -> Vec<PathBuf> {
    let link = |name: &str| std::fs::read_link(proc.path_of(pid, name)).ok();
    let current = link("cwd").unwrap_or_default();
    let arguments = proc.arguments(pid).unwrap_or_default();
    let assemblies = arguments.into_iter().map(|argument| current.join(OsString::from_vec(argument))).filter(|file| is_assembly(file));
    assemblies.take(MAX_FOLDERS / 2).chain(link("exe")).collect()
}

/// Checks that a profiler's library is a regular file: opening a pipe would block the runtime's diagnostic server forever. It depends on the
/// command whether the runtime itself reports a missing file.
pub(super) fn check_library(proc: &Proc, pid: u32, path: &str, must_exist: bool) -> Result<(), String> {
    match open_in(proc, pid, path) {
        Ok(file) => is_file(&file),
        Err(error) if must_exist => Err(unreadable(error)),
        Err(_) => Ok(()),
    }
}

/// Reads an assembly as seen by a process.
fn read(proc: &Proc, pid: u32, path: &str) -> Result<Assembly, String> {
    if !path.starts_with('/') {
        return Err("is not an absolute path".to_owned());
    }
    let mut file = open_in(proc, pid, path).map_err(unreadable)?;
    is_file(&file)?;
    Assembly::read(&mut file).map_err(|error| error.to_string())
}

fn unreadable(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "does not exist in the process's file system".to_owned(),
        _ => format!("cannot be inspected in the process's file system ({error})"),
    }
}

fn is_file(file: &File) -> Result<(), String> {
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err("is not a regular file".to_owned()),
        Err(error) => Err(unreadable(error)),
    }
}

#[cfg(test)]
mod tests;
