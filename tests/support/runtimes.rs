//! The real runtimes that `tests/setup.sh` puts into a cache folder, or a loud word that a test was skipped.
//!
//! ```ignore
//! let Some(net9) = runtimes::net9() else { return };
//! let program = net9.program("known").start();
//! ```
//!
//! With `CI=true` a missing runtime fails the test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::program::Launch;

/// A real runtime on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    /// Its exact version, as ProcessInfo3 reports it.
    pub(crate) version: &'static str,
    cache: PathBuf,
    /// Its folder among the compiled programs; a single-file runtime has none.
    programs: Option<&'static str>,
}

impl Runtime {
    /// A program of `tests/programs` by name.
    pub(crate) fn program(&self, name: &str) -> Launch {
        let Some(programs) = self.programs else { panic!("{self} is a single file and runs only its own program") };
        let program = self.cache.join("programs").join(programs).join(name).with_extension("dll");
        assert!(program.is_file(), "{self} has no program {name}: {} is missing", program.display());
        Launch::new(&self.host()).arg(program)
    }

    /// A program that goes on until it is stopped: what a test takes that runs on every runtime.
    pub(crate) fn any(&self) -> Launch {
        match self.programs {
            Some(_) => self.program("work").arg("1").arg("10"),
            None => Launch::new(&self.host())
                .arg("server")
                .arg("start")
                // It unpacks 40 MB of libraries when it starts: once is enough.
                .env("DOTNET_BUNDLE_EXTRACT_BASE_DIR", self.cache.join("extracted"))
                // It would talk to its maker.
                .env("AZURE_MCP_COLLECT_TELEMETRY", "false")
                .env("AZURE_MCP_COLLECT_TELEMETRY_MICROSOFT", "false")
                .env("OTEL_SDK_DISABLED", "true"),
        }
    }

    /// A start-up hook (`tests/programs/hook.cs`), for any runtime that knows them.
    pub(crate) fn hook(&self) -> PathBuf {
        self.cache.join("programs/net9/hook.dll")
    }

    /// A CLR profiler (`tests/programs/profiler.c`), for any runtime.
    pub(crate) fn profiler(&self) -> PathBuf {
        self.cache.join("programs/profiler.so")
    }

    /// The program file that processes of this runtime run: the muxer, or the single file.
    pub(crate) fn host(&self) -> PathBuf {
        self.cache.join(self.version).join(if self.programs.is_some() { "dotnet" } else { "azmcp" })
    }
}

impl std::fmt::Display for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".NET {}", self.version)
    }
}

/// .NET Core 3.1: no ProcessInfo, no environment, no perf map.
pub(crate) fn net31() -> Option<Runtime> {
    find("3.1.23", Some("net31"))
}

/// .NET 9, with ASP.NET Core and createdump.
pub(crate) fn net9() -> Option<Runtime> {
    find("9.0.7", Some("net9"))
}

/// .NET 10 as a single-file, self-contained program; it has no createdump beside it.
pub(crate) fn net10() -> Option<Runtime> {
    find("10.0.9", None)
}

/// Those of the three that are there.
pub(crate) fn all() -> Vec<Runtime> {
    [net31(), net9(), net10()].into_iter().flatten().collect()
}

/// Whether programs can be started in pid and mount namespaces of their own, as `Launch::contained` does. Some machines,
/// containers among them, do not let even root do that, so that this is skipped in CI too.
pub(crate) fn namespaces() -> bool {
    // Whatever is mounted over the folder, nobody else sees it.
    let mut probe = super::program::namespaced(&std::env::temp_dir());
    let possible = probe.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !possible {
        skip("unshare may not make pid and mount namespaces here");
    }
    possible
}

fn find(version: &'static str, programs: Option<&'static str>) -> Option<Runtime> {
    let runtime = Runtime { version, cache: cache(), programs };
    let missing = if !runtime.host().is_file() {
        Some(format!("{runtime} is missing: no {}", runtime.host().display()))
    } else if programs.is_some() && !programs_are_current(&runtime.cache) {
        Some("the programs of tests/programs are not compiled, or from other sources".to_owned())
    } else {
        None
    };
    match missing {
        None => Some(runtime),
        Some(missing) => {
            let missing = format!("{missing}; run tests/setup.sh");
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing} (with CI=true this is a failure)");
            skip(&missing);
            None
        }
    }
}

fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("DN_TOP_RUNTIMES")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("dn-top-test-runtimes")))
        .or_else(|| Some(set("HOME")?.join(".cache/dn-top-test-runtimes")))
        .expect("HOME is not set")
}

/// The set-up keeps the sources beside what it compiled from them.
fn programs_are_current(cache: &Path) -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    fs::read_dir(here).unwrap().all(|source| {
        let source = source.unwrap();
        fs::read(cache.join("programs/source").join(source.file_name())).is_ok_and(|kept| kept == fs::read(source.path()).unwrap())
    })
}

/// Says on the real standard error, which the test runner does not capture, that the running test was skipped.
pub(crate) fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
