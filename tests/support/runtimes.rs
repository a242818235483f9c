//! The real runtimes installed in a cache folder by `tests/setup.sh`; a test without its runtime prints that it was skipped.
//!
//! ```ignore
//! runtimes::each(runtimes::with("known"), |runtime| {
//!     let program = runtime.program("known").start();
//! });
//! ```
//!
//! With `CI=true`, a missing runtime fails the test if it is available as a package. .NET 8 and 10 as multi-file installations, and
//! NativeAOT, are in no package, so that their tests are skipped without an archive.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::program::Launch;

/// A real runtime on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    /// Exact version, as reported by ProcessInfo3.
    pub(crate) version: &'static str,
    form: Form,
    /// Executable of its processes.
    host: PathBuf,
}

/// How a runtime is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In many files, with a muxer, `dotnet`, that runs any program.
    Installed,
    /// Inside a program, which a startup hook replaces with any other.
    SingleFile,
    /// The same, for musl.
    Musl,
    /// Inside a trimmed program, which runs only itself.
    Trimmed,
    /// Inside a program, compiled ahead of time.
    NativeAot,
}

impl Runtime {
    /// 3, 8, 9 or 10.
    pub(crate) fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|major| major.parse().ok()).unwrap()
    }

    /// Returns a program of `tests/programs` by name.
    pub(crate) fn program(&self, name: &str) -> Launch {
        let Some(program) = self.compiled(name) else { panic!("{self} has no program {name}") };
        match self.form {
            Form::SingleFile | Form::Musl => self.launch().env("DOTNET_STARTUP_HOOKS", programs().join("net8/host.dll")).arg(program),
            _ => self.launch().arg(program),
        }
    }

    /// Returns a program that runs until it is stopped, for tests on every runtime.
    pub(crate) fn any(&self) -> Launch {
        match self.form {
            Form::Installed | Form::SingleFile | Form::Musl => self.program("work").arg("1").arg("10"),
            Form::Trimmed => self
                .launch()
                .arg("server")
                .arg("start")
                // Disables its telemetry.
                .env("AZURE_MCP_COLLECT_TELEMETRY", "false")
                .env("AZURE_MCP_COLLECT_TELEMETRY_MICROSOFT", "false")
                .env("OTEL_SDK_DISABLED", "true"),
            Form::NativeAot => self.launch(),
        }
    }

    /// Returns the process name of a program of `tests/programs`, or of [`Self::any`].
    pub(crate) fn name_of<'a>(&self, program: &'a str) -> &'a str {
        match self.form {
            Form::Installed => program,
            Form::SingleFile => "Sarif.Multitool",
            Form::Musl => "Dosai-linux-musl-x64",
            Form::Trimmed => "azmcp",
            Form::NativeAot => "aot8",
        }
    }

    /// Returns whether it runs only its own program, without startup hooks.
    pub(crate) fn is_trimmed(&self) -> bool {
        self.form == Form::Trimmed
    }

    /// Returns whether it is in one file: it has no createdump, and supports only full dumps.
    pub(crate) fn is_single_file(&self) -> bool {
        matches!(self.form, Form::SingleFile | Form::Musl | Form::Trimmed)
    }

    pub(crate) fn is_native_aot(&self) -> bool {
        self.form == Form::NativeAot
    }

    /// Path of a startup hook (`tests/programs/hook.cs`), for any runtime that supports hooks.
    pub(crate) fn hook(&self) -> PathBuf {
        programs().join("net9/hook.dll")
    }

    /// Path of a CLR profiler (`tests/programs/profiler.c`), for any runtime.
    pub(crate) fn profiler(&self) -> PathBuf {
        programs().join("profiler.so")
    }

    /// Executable of this runtime's processes: the muxer, or the single file.
    pub(crate) fn host(&self) -> PathBuf {
        self.host.clone()
    }

    fn launch(&self) -> Launch {
        let launch = Launch::new(&self.host);
        match self.form {
            Form::Installed | Form::NativeAot => launch,
            // Globalization would need ICU, another package.
            Form::Musl => launch.env("LD_LIBRARY_PATH", self.host.with_file_name("lib")).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"),
            // They unpack 40 MB of libraries at startup: once is enough.
            Form::SingleFile | Form::Trimmed => {
                launch.env("DOTNET_BUNDLE_EXTRACT_BASE_DIR", cache().join("extracted")).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            }
        }
    }

    /// Returns a program of `tests/programs` compiled for this runtime.
    pub(crate) fn compiled(&self, name: &str) -> Option<PathBuf> {
        let folder = match (self.form, self.major()) {
            (Form::Trimmed | Form::NativeAot, _) => return None,
            (_, 3) => "net31".to_owned(),
            (_, major) => format!("net{major}"),
        };
        Some(programs().join(folder).join(name).with_extension("dll")).filter(|program| program.is_file())
    }
}

impl std::fmt::Display for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let form = match self.form {
            Form::Installed => "",
            Form::SingleFile | Form::Trimmed => " (single file)",
            Form::Musl => " (single file, musl)",
            Form::NativeAot => " (NativeAOT)",
        };
        write!(f, ".NET {}{form}", self.version)
    }
}

/// .NET Core 3.1: no ProcessInfo, no environment, no perf map.
pub(crate) fn net31() -> Option<Runtime> {
    packaged("3.1.23", Form::Installed, "dotnet")
}

/// .NET 8 with ASP.NET Core and createdump; otherwise as a single file.
pub(crate) fn net8() -> Option<Runtime> {
    archived("8.0.33").or_else(single_file_net8)
}

/// .NET 9 with ASP.NET Core and createdump.
pub(crate) fn net9() -> Option<Runtime> {
    packaged("9.0.7", Form::Installed, "dotnet")
}

/// .NET 10 with ASP.NET Core and createdump; otherwise as a single trimmed file.
pub(crate) fn net10() -> Option<Runtime> {
    archived("10.0.14").or_else(single_file_net10)
}

/// .NET 8 as a single-file, self-contained program; it has no createdump.
pub(crate) fn single_file_net8() -> Option<Runtime> {
    packaged("8.0.30", Form::SingleFile, "Sarif.Multitool")
}

/// .NET 10 as a single-file, self-contained and trimmed program; it has no createdump.
pub(crate) fn single_file_net10() -> Option<Runtime> {
    packaged("10.0.9", Form::Trimmed, "azmcp")
}

/// .NET 10 for musl, as in images of Alpine Linux, as a single-file, self-contained program.
pub(crate) fn musl() -> Option<Runtime> {
    let runtime = Runtime { version: "10.0.0", form: Form::Musl, host: cache().join("10.0.0/dosai") };
    if Path::new("/lib/ld-musl-x86_64.so.1").exists() {
        return packaged(runtime.version, runtime.form, "dosai");
    }
    skip(&format!("{runtime} needs the package musl"));
    None
}

/// A NativeAOT program of .NET 8: 20 exceptions a second, two threads that contend, an event source and a meter.
pub(crate) fn native_aot() -> Option<Runtime> {
    let runtime = Runtime { version: "8.0.33", form: Form::NativeAot, host: cache().join("aot8/aot8") };
    if runtime.host.is_file() {
        return Some(runtime);
    }
    skip(&format!("{runtime} comes from an archive: {NO_ARCHIVE}"));
    None
}

/// One runtime of each available version.
pub(crate) fn all() -> Vec<Runtime> {
    [net31(), net8(), net9(), net10()].into_iter().flatten().collect()
}

/// The available single-file runtimes, .NET 8 and 10.
pub(crate) fn single_files() -> Vec<Runtime> {
    [single_file_net8(), single_file_net10()].into_iter().flatten().collect()
}

/// One runtime of each version that can run this program of `tests/programs`.
pub(crate) fn with(program: &str) -> Vec<Runtime> {
    let mut runtimes = all();
    runtimes.retain(|runtime| {
        let runs = runtime.compiled(program).is_some();
        // Programs that need newer libraries do not exist for 3.1.
        if !runs && runtime.major() > 3 {
            skip(&format!("{runtime} does not run {program}, and one that does comes from an archive: {NO_ARCHIVE}"));
        }
        runs
    });
    runtimes
}

/// [`with`], and the runtime for musl.
pub(crate) fn with_and_musl(program: &str) -> Vec<Runtime> {
    with(program).into_iter().chain(musl()).collect()
}

/// One runtime of each version, the single-file runtimes, and the one for musl.
pub(crate) fn all_and_single_files() -> Vec<Runtime> {
    all().into_iter().chain(single_files()).chain(musl()).collect()
}

/// Keeps runtimes of this major version and newer ones.
pub(crate) fn since(major: u32, mut runtimes: Vec<Runtime>) -> Vec<Runtime> {
    runtimes.retain(|runtime| runtime.major() >= major);
    runtimes
}

/// Keeps runtimes older than this major version.
pub(crate) fn before(major: u32, mut runtimes: Vec<Runtime>) -> Vec<Runtime> {
    runtimes.retain(|runtime| runtime.major() < major);
    runtimes
}

/// Runs a check on each of these runtimes concurrently, and finally panics with the names of those that failed, if any.
pub(crate) fn each(runtimes: Vec<Runtime>, check: impl Fn(&Runtime) + Sync) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let check = &check;
    let outcomes: Vec<_> = thread::scope(|scope| {
        let start =
            |runtime| thread::Builder::new().name(format!("{test} on {runtime}")).spawn_scoped(scope, move || check(runtime)).unwrap();
        let running: Vec<_> = runtimes.iter().map(start).collect();
        running.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    let failed = runtimes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_err());
    let failed: Vec<_> = failed.map(|(runtime, _)| runtime.to_string()).collect();
    assert!(failed.is_empty(), "failed on {}", failed.join(", "));
}

/// The same sequentially, for checks that are sensitive to load.
pub(crate) fn each_in_turn(runtimes: Vec<Runtime>, check: impl Fn(&Runtime) + Sync) {
    let turn = Mutex::new(());
    each(runtimes, |runtime| {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        check(runtime);
    });
}

/// [`each`] for an asynchronous check.
pub(crate) fn each_async(runtimes: Vec<Runtime>, check: impl AsyncFn(&Runtime) + Sync) {
    each(runtimes, |runtime| block_on(check(runtime)));
}

/// [`each_in_turn`] for an asynchronous check.
pub(crate) fn each_async_in_turn(runtimes: Vec<Runtime>, check: impl AsyncFn(&Runtime) + Sync) {
    each_in_turn(runtimes, |runtime| block_on(check(runtime)));
}

/// Runs a future, with worker threads for the tasks it spawns.
fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(future);
}

/// Returns whether programs can be started in their own PID and mount namespaces, as `Launch::contained` does. Some machines, such as
/// containers, do not permit that even to root, so that it is skipped in CI too.
pub(crate) fn namespaces() -> bool {
    // A mount over this folder is not visible to other processes.
    let mut probe = super::program::namespaced(&std::env::temp_dir(), "rw");
    let possible = probe.arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !possible {
        skip("unshare may not make pid and mount namespaces here");
    }
    possible
}

/// Returns a runtime that the setup installs from a package.
fn packaged(version: &'static str, form: Form, file: &str) -> Option<Runtime> {
    let runtime = Runtime { version, form, host: cache().join(version).join(file) };
    let missing = if !runtime.host.is_file() {
        format!("{runtime} is missing: no {}", runtime.host.display())
    } else if form != Form::Trimmed && !programs_are_current() {
        "the programs of tests/programs are not compiled, or from other sources".to_owned()
    } else {
        return Some(runtime);
    };
    skip_unless_ci(&format!("{missing}; run tests/setup.sh"));
    None
}

const NO_ARCHIVE: &str = "set DN_TOP_RUNTIME_ARCHIVES and run tests/setup.sh (it says which)";

/// Returns a runtime that the setup installs from an archive, or the newest installed one of the same major version.
fn archived(version: &'static str) -> Option<Runtime> {
    let runtime = Runtime { version, form: Form::Installed, host: cache().join(version).join("dotnet") };
    if runtime.host.is_file() && programs_are_current() {
        return Some(runtime);
    }
    let folders = [std::env::var_os("DOTNET_ROOT").map(PathBuf::from), Some("/usr/share/dotnet".into()), Some("/usr/lib/dotnet".into())];
    let prefix = format!("{}.", runtime.major());
    let found = folders.into_iter().flatten().filter(|folder| folder.join("dotnet").is_file()).find_map(|folder| {
        let versions = fs::read_dir(folder.join("shared/Microsoft.NETCore.App")).ok()?;
        let versions = versions.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // The muxer selects the newest: of 8.0.9 and 8.0.33, the latter.
        let version = versions.filter(|version| version.starts_with(&prefix)).max_by_key(|version| (version.len(), version.clone()))?;
        Some(Runtime { version: version.leak(), form: Form::Installed, host: folder.join("dotnet") })
    });
    found.filter(|_| programs_are_current())
}

fn programs() -> PathBuf {
    cache().join("programs")
}

pub(crate) fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("DN_TOP_RUNTIMES")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("dn-top-test-runtimes")))
        .or_else(|| Some(set("HOME")?.join(".cache/dn-top-test-runtimes")))
        .expect("HOME is not set")
}

/// The setup keeps the sources together with the compiled programs.
fn programs_are_current() -> bool {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    fs::read_dir(here).unwrap().all(|source| {
        let source = source.unwrap();
        fs::read(programs().join("source").join(source.file_name())).is_ok_and(|kept| kept == fs::read(source.path()).unwrap())
    })
}

/// Prints that the running test was skipped because something is missing that the setup installs, which is a failure in CI.
pub(super) fn skip_unless_ci(missing: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing} (with CI=true this is a failure)");
    skip(missing);
}

/// Prints that the running test was skipped, on the real standard error, which is not captured by the test runner.
pub(crate) fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
