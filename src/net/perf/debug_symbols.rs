//! The functions of native files, including those that were moved to a separate file with debug symbols.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::net::elf::{Functions, identity};
use crate::net::proc::Proc;

/// Folder of debug symbols by build ID, as distributions install them (GDB manual, "Separate Debug Files").
const FOLDER: &str = "/usr/lib/debug/.build-id";

/// Reads the functions of a file as seen by a process. If the file was stripped, also those of its debug symbols, if they are installed.
pub(super) fn read_functions(proc: &Proc, pid: u32, path: &Path) -> io::Result<Functions> {
    let file = proc.regular_file(pid, path)?;
    let mut functions = Functions::read(&file)?;
    if functions.is_stripped()
        && let Some(symbols) = debug_symbols(&file, path, |path| proc.regular_file(pid, path))
    {
        // The exported functions are known in any case.
        let _ = functions.add(&symbols);
    }
    Ok(functions)
}

/// Opens the debug symbols of a file: `NAME.dbg` beside it, as Microsoft names them, or those in [`FOLDER`]. Those of another build are not used.
fn debug_symbols(file: &File, path: &Path, open: impl Fn(&Path) -> io::Result<File>) -> Option<File> {
    let build_id = identity(file).ok()??.build_id;
    let mut beside = OsString::from(path);
    beside.push(".dbg");
    [PathBuf::from(beside), path_by_id(&build_id)?].iter().find_map(|path| {
        let symbols = open(path).ok()?;
        (identity(&symbols).ok()??.build_id == build_id).then_some(symbols)
    })
}

/// Returns the path for a build ID: the first byte names a subfolder.
fn path_by_id(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(PathBuf::from(format!("{FOLDER}/{first:02x}/{rest}.debug")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn debug_symbols_of_the_same_build_are_used() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let run = |program: &str, arguments: &[&str]| {
            let done = Command::new(program).args(arguments).current_dir(place.path()).status();
            done.is_ok_and(|status| status.success())
        };
        let build = |name: &str, code: &str| {
            std::fs::write(at("a.c"), code).unwrap();
            run("cc", &["-g", "-shared", "-fPIC", "-Wl,--build-id", "-o", name, "a.c"])
        };
        if !build("other.so", "static int other(int a) { return a + 1; } int exported(int a) { return other(a); }") {
            eprintln!("skipped: cc is not installed");
            return;
        }
        assert!(build("a.so", "static int hidden(int a) { return a * 2; } int exported(int a) { return hidden(a); }"));
        for name in ["a", "other"] {
            assert!(run("objcopy", &["--only-keep-debug", &format!("{name}.so"), &format!("{name}.dbg")]));
        }
        assert!(run("strip", &["a.so"]));
        let file = File::open(at("a.so")).unwrap();
        let functions = || {
            let mut functions = Functions::read(&file).unwrap();
            assert!(functions.is_stripped());
            if let Some(symbols) = debug_symbols(&file, &at("a.so"), |path| {
                // The folder of the system is simulated.
                File::open(path.strip_prefix(FOLDER).map_or(path.to_owned(), |name| at("by-id").join(name)))
            }) {
                functions.add(&symbols).unwrap();
            }
            let has = |name: &str| (0..0x4000).any(|place| functions.at(place).is_some_and(|(found, ..)| found == name.as_bytes()));
            [has("exported"), has("hidden"), has("other")]
        };
        assert_eq!(functions(), [true, false, false]);
        std::fs::rename(at("other.dbg"), at("a.so.dbg")).unwrap();
        assert_eq!(functions(), [true, false, false], "they are of another build");
        std::fs::copy(at("a.dbg"), at("a.so.dbg")).unwrap();
        assert_eq!(functions(), [true, true, false]);
        std::fs::remove_file(at("a.so.dbg")).unwrap();
        let by_id = path_by_id(&identity(&file).unwrap().unwrap().build_id).unwrap();
        let by_id = at("by-id").join(by_id.strip_prefix(FOLDER).unwrap());
        std::fs::create_dir_all(by_id.parent().unwrap()).unwrap();
        std::fs::rename(at("a.dbg"), by_id).unwrap();
        assert_eq!(functions(), [true, true, false]);
    }

    #[test]
    fn path_has_a_folder_for_the_first_byte() {
        assert_eq!(path_by_id(&[0xab, 0xcd, 0x01]), Some(PathBuf::from("/usr/lib/debug/.build-id/ab/cd01.debug")));
        assert_eq!(path_by_id(&[]), None);
    }
}
