use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, Mode};

use super::*;
use crate::assembly::tests::{HOOK, TestAssembly};
use crate::net::fake_proc::{Fake, FakeProc, fake};

const PID: u32 = 42;

/// A process with its own files, and these mapped files.
fn fake_proc(maps: &str) -> (FakeProc, Proc) {
    let fake_proc = FakeProc::new();
    let maps: String = maps.lines().map(|path| format!("7f00-7f01 r--p 0 08:01 12   {path}\n")).collect();
    fake_proc.add(&Fake { maps: &maps, ..fake(PID) });
    for folder in ["app", "net", "other", "a:b"] {
        fs::create_dir_all(fake_proc.path("proc/42/root").join(folder)).unwrap();
    }
    let proc = Proc::open(&fake_proc.path("proc")).unwrap();
    (fake_proc, proc)
}

impl FakeProc {
    fn file(&self, path: &str, bytes: &[u8]) {
        fs::write(self.path("proc/42/root").join(path), bytes).unwrap();
    }

    fn assembly(&self, path: &str, sample: &TestAssembly) {
        self.file(path, &sample.bytes());
    }
}

#[test]
fn startup_hooks_are_checked_in_the_process_file_system() {
    let (fake_proc, proc) = fake_proc("");
    fake_proc.assembly("app/hook.dll", &HOOK);
    fake_proc.assembly("a:b/hook.dll", &HOOK);
    fake_proc.assembly("app/service.dll", &TestAssembly { class: "Program", ..HOOK });
    fake_proc.assembly("app/wrong.dll", &TestAssembly { signature: &[0, 1, 1, 8], ..HOOK });
    fake_proc.assembly("app/module.dll", &TestAssembly { manifest: false, ..HOOK });
    fake_proc.assembly("app/x86.dll", &TestAssembly { cli_flags: 3, ..HOOK });
    fake_proc.file("app/cut.dll", &HOOK.bytes()[..700]);
    fake_proc.file("app/text.dll", b"MZ");
    // Absolute links are relative to the process's root.
    let root = fake_proc.path("proc/42/root");
    symlink("/app/hook.dll", root.join("link.dll")).unwrap();
    symlink("/etc/passwd", root.join("outside.dll")).unwrap();
    rustix::fs::mknodat(CWD, root.join("pipe.dll"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let check = |path: &str| check(&proc, PID, path);
    for good in ["/app/hook.dll", "/link.dll", "/app/../app/hook.dll"] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    for (bad, why) in [
        ("app/hook.dll", "is not an absolute path"),
        ("", "is not an absolute path"),
        ("/app/hook", "does not exist in the process's file system"),
        ("/app/hook.dll/x", "does not exist in the process's file system"),
        ("/outside.dll", "does not exist in the process's file system"),
        ("/app", "is not a regular file"),
        ("/pipe.dll", "is not a regular file"),
        ("/app/text.dll", "is not a .NET assembly"),
        ("/app/module.dll", "is not a .NET assembly"),
        ("/app/cut.dll", "has metadata that cannot be read (the file is cut off)"),
        ("/app/service.dll", "has no class StartupHook in the global namespace"),
        ("/app/wrong.dll", "has no method `static void Initialize()` in its class StartupHook"),
        ("/app/x86.dll", "is compiled for another processor architecture"),
        ("/a:b/hook.dll", "has a ':' in its path, which separates startup hooks"),
    ] {
        assert_eq!(check(bad), Err(why.to_owned()), "{bad}");
    }
    let gone = super::check(&proc, 43, "/app/hook.dll").unwrap_err();
    assert_eq!(gone, "does not exist in the process's file system");
}

/// .NET 9 and 10 were seen to crash when a hook had the name of another assembly, and when a hook was compiled for a newer .NET.
#[test]
fn startup_hook_must_match_loaded_assemblies_and_runtime() {
    let runtime = TestAssembly { name: "System.Runtime", class: "Object", version: [9, 0, 0, 0], ..HOOK };
    for (maps, other, hook, expected) in [
        ("/app/shop.dll", TestAssembly { name: "shop", mvid: 2, ..HOOK }, HOOK, Ok(())),
        // The same assembly in another folder is the one that is loaded.
        ("/app/hook.dll", HOOK, HOOK, Ok(())),
        ("/app/hook.dll", TestAssembly { mvid: 2, ..HOOK }, HOOK, Err("has the name of another assembly of the process, /app/hook.dll")),
        ("/app/shop.dll", TestAssembly { mvid: 2, ..HOOK }, HOOK, Err("has the name of another assembly of the process, /app/hook.dll")),
        ("/app/hook.dll (deleted)", HOOK, HOOK, Err("has the name of the assembly hook, which is loaded and whose file has been replaced")),
        ("/net/mscorlib.dll", HOOK, TestAssembly { system_runtime: [9, 0, 0, 0], ..HOOK }, Ok(())),
        (
            "/net/mscorlib.dll",
            HOOK,
            TestAssembly { system_runtime: [10, 0, 0, 0], ..HOOK },
            Err("is compiled for .NET 10, and the process runs .NET 9"),
        ),
    ] {
        let (fake_proc, proc) = fake_proc(maps);
        fake_proc.assembly("net/System.Runtime.dll", &runtime);
        fake_proc.assembly(&format!("app/{}.dll", other.name), &other);
        fake_proc.assembly("other/hook.dll", &hook);
        assert_eq!(check(&proc, PID, "/other/hook.dll"), expected.map_err(str::to_owned), "{maps}");
    }
}

#[test]
fn profiler_library_must_be_a_regular_file() {
    let (fake_proc, proc) = fake_proc("");
    fake_proc.file("app/profiler.so", b"\x7fELF");
    rustix::fs::mknodat(CWD, fake_proc.path("proc/42/root/pipe.so"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    let check = |path: &str, must_exist| check_library(&proc, PID, path, must_exist);
    for must_exist in [true, false] {
        assert_eq!(check("/app/profiler.so", must_exist), Ok(()));
        assert_eq!(check("/pipe.so", must_exist), Err("is not a regular file".to_owned()));
        assert_eq!(check("/app", must_exist), Err("is not a regular file".to_owned()));
    }
    assert_eq!(check("/none.so", true), Err("does not exist in the process's file system".to_owned()));
    assert_eq!(check("/none.so", false), Ok(()));
}
