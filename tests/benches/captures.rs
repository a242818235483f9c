//! Input files of the benchmarks, and the clock that times them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dn_top::clr::select;
use dn_top::model::{Process, ProcessKey};
use dn_top::net::client::Client;
use dn_top::net::endpoint::Endpoint;

/// Minimum size of the recording, in bytes.
const SIZE: u64 = 210_000_000;

/// Returns the files given on the command line; without any, a large recording and the captures in the repository. All of them are in the
/// page cache.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::env::args_os().skip(1).filter(|arg| arg != "--bench").map(PathBuf::from).collect();
    if files.is_empty() {
        files.extend(recording());
        let captures = std::fs::read_dir("tests/captures").expect("run in the package's directory");
        let mut captures: Vec<_> = captures.map(|entry| entry.unwrap().path()).collect();
        captures.retain(|path| path.extension().is_some_and(|end| end == "xz"));
        captures.sort();
        files.append(&mut captures);
    }
    files.iter().for_each(|file| drop(std::fs::read(file)));
    files
}

/// Returns the path of the large recording, making it first if necessary. `None` without .NET 9.
fn recording() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("dn-top-benchmarks");
    let file = cache.join("net9-work.nettrace");
    if !file.is_file() {
        let program = crate::support::runtimes::net9()?.program("work").arg("0").arg("200").start();
        std::fs::create_dir_all(&cache).unwrap();
        println!("recording {} MB from .NET 9 into {}", SIZE / 1_000_000, file.display());
        let part = file.with_extension("partial");
        record(&program, &part);
        std::fs::rename(part, &file).unwrap();
    }
    Some(file)
}

/// Records all runtime events, samples with stacks and the program's own events until the file is large enough, then the rundown.
fn record(program: &crate::support::Program, file: &Path) {
    let everything = ["Microsoft-Windows-DotNETRuntime:0x100000c019:5", "Microsoft-DotNETCore-SampleProfiler:0:4", "DnTop-Work"];
    let config = select(&[] as &[&str], &everything, None).unwrap().config;
    let process = Process { socket: Some(program.socket()), ..Process::new(ProcessKey { pid: program.pid(), started: 1 }) };
    let client = Client::new(Endpoint::of(&process).unwrap());
    let mut file = File::create(file).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let session = client.start_session(&config).await.unwrap();
        let mut stream = session.stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        let (enough, stop) = tokio::sync::oneshot::channel();
        let copy = tokio::task::spawn_blocking(move || {
            let (mut buffer, mut copied, mut enough) = (vec![0; 256 << 10], 0, Some(enough));
            loop {
                let count = stream.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                file.write_all(&buffer[..count]).unwrap();
                copied += count as u64;
                if copied > SIZE
                    && let Some(enough) = enough.take()
                {
                    enough.send(()).unwrap();
                }
            }
        });
        stop.await.unwrap();
        client.stop_session(session.id).await.unwrap();
        copy.await.unwrap();
    });
}

pub(crate) fn read(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut input = File::open(file).expect("a capture");
    if file.extension().is_some_and(|end| end == "xz") {
        xz2::read::XzDecoder::new(input).read_to_end(&mut bytes).expect("xz");
    } else {
        input.read_to_end(&mut bytes).expect("a file");
    }
    bytes
}

/// Returns the CPU time used by this thread.
pub(crate) fn time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
