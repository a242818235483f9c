//! No startup hook given by the user can end a runtime: fatal ones are rejected before they are sent.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::fatal_requests::{assert_survives, attempt, every_runtime_form, program_file};
use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, folder};

/// Files that look like a startup hook, each with its defect.
pub(crate) fn bad_hooks(runtime: &Runtime, place: &Path) -> Vec<(PathBuf, &'static str)> {
    let hook = fs::read(runtime.hook()).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    };
    let renamed = |from: &str, to: &str| replaced(&hook, format!("\0{from}\0").as_bytes(), format!("\0{to}\0").as_bytes());
    let pipe = place.join("pipe.dll");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    vec![
        (place.join("missing.dll"), "does not exist in the process's file system"),
        ("missing.dll".into(), "does not exist in the process's file system"),
        (place.to_owned(), "is not a regular file"),
        (pipe, "is not a regular file"),
        (file("text.dll", b"MZ, and no assembly"), "is not a .NET assembly"),
        (file("cut.dll", &hook[..hook.len() / 2]), ""),
        (file("class.dll", &renamed("StartupHook", "StartupHoop")), "has no class StartupHook in the global namespace"),
        (file("method.dll", &renamed("Initialize", "Initializf")), "has no method `static void Initialize()`"),
        (file("a:b/hook.dll", &hook), "has a ':' in its path"),
        ("/".into(), ""),
        ("/dev/zero".into(), "is not a regular file"),
    ]
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

#[test]
fn invalid_startup_hooks_do_not_crash_runtime() {
    runtimes::each(every_runtime_form().into_iter().filter(|runtime| runtime.major() >= 8).collect(), |runtime| {
        let place = folder();
        let mut program = runtime.any().start();
        let mut attempts: Vec<_> = bad_hooks(runtime, place.path())
            .into_iter()
            .map(|(path, why)| attempt(["startup-hook".as_ref(), "PID".as_ref(), path.as_os_str()]).refused(why))
            .collect();
        attempts.push(attempt(["startup-hook", "PID", ""]).refused(""));
        assert_survives(runtime, &mut program, attempts);
    });
}

/// A valid hook with another name, and one with the name of an assembly of the program.
#[test]
fn conflicting_startup_hooks_do_not_crash_runtime() {
    runtimes::each(
        runtimes::since(8, runtimes::with("work")).into_iter().filter(|runtime| !runtime.is_single_file()).collect(),
        |runtime| {
            let place = folder();
            let hook = fs::read(runtime.hook()).unwrap();
            let [first, second] = ["first", "second"].map(|name| place.path().join(name));
            for folder in [&first, &second] {
                fs::create_dir(folder).unwrap();
                fs::write(folder.join("hook.dll"), &hook).unwrap();
            }
            // The module version ID is in the GUID heap, which is not directly followed by the name of the next heap.
            let taken = first.join("taken.dll");
            fs::write(&taken, replaced(&hook, b"\0hook\0", b"\0work\0")).unwrap();
            let mut program = runtime.program("work").arg("1").arg("10").start();
            let apply = |path: PathBuf| attempt(["startup-hook".as_ref(), "PID".as_ref(), path.as_os_str()]);
            assert_survives(
                runtime,
                &mut program,
                vec![
                    apply(program_file(runtime)).refused("has no class StartupHook"),
                    apply(taken).refused("has the name of another assembly of the process"),
                    apply(first.join("hook.dll")),
                    // The same assembly again, and from another place.
                    apply(first.join("hook.dll")),
                    apply(second.join("hook.dll")),
                ],
            );
            assert_eq!(
                Invocation::new(["startup-hook", &program.pid().to_string(), second.join("hook.dll").to_str().unwrap()]).run().code,
                0
            );
            // A recompiled hook, next to the first one and in its place.
            fs::write(second.join("hook.dll"), with_another_version_id(&hook)).unwrap();
            fs::remove_file(first.join("hook.dll")).unwrap();
            fs::write(first.join("hook.dll"), with_another_version_id(&hook)).unwrap();
            assert_survives(
                runtime,
                &mut program,
                vec![apply(second.join("hook.dll")).refused("has the name of"), apply(first.join("hook.dll")).refused("has the name of")],
            );
        },
    );
}

/// The GUID heap of this small assembly has one GUID, that of the module.
fn with_another_version_id(assembly: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(*assembly[at..].first_chunk().unwrap()) as usize;
    let root = assembly.windows(4).position(|window| window == b"BSJB").unwrap();
    let name = root + assembly[root..].windows(6).position(|window| window == b"#GUID\0").unwrap();
    let guid = root + word(name - 8);
    assert_eq!(word(name - 4), 16);
    let mut bytes = assembly.to_owned();
    bytes[guid] ^= 0xff;
    bytes
}
