//! Time taken to find the .NET processes: hundreds of simulated ones, and those of this machine.
//!
//! `cargo bench --bench discovery`; medians of the rounds. "First" is a scan with an empty cache, "next" one of the scans that follow every
//! second, "asked" the whole list including the ProcessInfo response of each process.

use std::time::{Duration, Instant};

use dn_top::net::Directory;
use dn_top::net::discovery::{Scanner, Sources};
use dn_top::sim::Fleet;

const ROUNDS: usize = 15;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    println!("{:<28} {:>8} {:>12} {:>12} {:>12}", "", "listed", "first, ms", "next, ms", "asked, ms");
    measure(&runtime, "this machine", &Sources::machine());
    for count in [50, 500] {
        let folder = tempfile::tempdir().expect("a folder");
        let _fleet = runtime.block_on(async { Fleet::uniform(folder.path(), count) }).expect("simulated runtimes");
        measure(&runtime, &format!("{count} simulated"), &Sources::below(folder.path()));
    }
}

fn measure(runtime: &tokio::runtime::Runtime, name: &str, sources: &Sources) {
    let mut listed = 0;
    let (mut first, mut next, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut scanner = Scanner::new(sources.clone()).expect("a proc file system");
        let mut scan = || {
            let began = Instant::now();
            listed = scanner.scan(began).expect("a list").len();
            began.elapsed()
        };
        first.push(scan());
        next.extend((0..10).map(|_| scan()));
        let mut directory = Directory::new(sources.clone()).expect("a proc file system");
        let began = Instant::now();
        runtime.block_on(directory.refresh(Duration::from_secs(10))).expect("a list");
        asked.push(began.elapsed());
    }
    println!("{name:<28} {listed:>8} {:>12.2} {:>12.2} {:>12.2}", median(first), median(next), median(asked));
}

/// Returns the median in milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}
