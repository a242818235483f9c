//! A program that is sampled by dn-top and by the `perf` of Linux at the same time: both show the same.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use dn_top::analysis::SampleFilter;
use dn_top::session::read_trace;

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Signal, folder, send};

/// Samples after which 2 percentage points are about three standard deviations of the difference of two shares of 70 %, were all samples independent of each
/// other.
const EXACT: u64 = 8400;
/// How far shares may be apart, percentage points.
const APART: f64 = 2.0;
/// Most samples that may have no name by perf, per cent: with more of them a comparison shows nothing.
const UNNAMED: f64 = 2.0;
/// Programs that are sampled one after another while perf lacks names.
const ATTEMPTS: u32 = 5;

/// Samples of one thread by function.
#[derive(Debug, Default)]
struct Shares {
    samples: u64,
    /// Samples with a frame without a name in memory of no file: it may be any method.
    unnamed: u64,
    /// Samples in the function itself, and in all that it calls.
    functions: HashMap<String, [u64; 2]>,
}

impl Shares {
    /// Of itself and in total, per cent.
    fn of(&self, function: &str) -> [f64; 2] {
        self.functions.get(function).map_or([0.0; 2], |counts| counts.map(|count| count as f64 * 100.0 / self.samples as f64))
    }

    fn merge(&mut self, other: Self) {
        self.samples += other.samples;
        self.unnamed += other.unnamed;
        for (function, [own, total]) in other.functions {
            let counts = self.functions.entry(function).or_default();
            *counts = [counts[0] + own, counts[1] + total];
        }
    }

    /// Samples that may be of any method, per cent.
    fn unnamed_percent(&self) -> f64 {
        self.unnamed as f64 * 100.0 / self.samples.max(1) as f64
    }

    /// From what dn-top wrote.
    fn add_file(&mut self, file: &Path, thread: u64) {
        let contents = read_trace(file, None, |_| true).unwrap().unwrap();
        let profile = &contents.analysis.cpu.as_ref().unwrap().profile;
        let threads = profile.methods(SampleFilter::ALL, 1).threads;
        let thread = threads.iter().find(|sampled| sampled.thread.thread == thread).unwrap().thread;
        let found = profile.methods(SampleFilter { thread: Some(thread), ..SampleFilter::ALL }, usize::MAX);
        self.samples += found.samples.all();
        for method in found.methods {
            let counts = self.functions.entry(short(&method.name)).or_default();
            counts[0] += method.own.all();
            counts[1] += method.total.all();
        }
    }

    /// From the text of `perf script -F ip,sym,dso`: a line `ADDRESS FUNCTION (FILE)` for each frame, innermost first, and an empty line behind each sample.
    fn add_script(&mut self, text: &str) {
        for sample in text.split("\n\n") {
            let frames = sample.lines().filter_map(|line| line.trim().split_once(' ')?.1.rsplit_once(" ("));
            let frames: Vec<_> = frames.map(|(name, file)| (short(name), file.trim_end_matches(')'))).collect();
            let Some((leaf, _)) = frames.first() else { continue };
            self.samples += 1;
            self.unnamed += u64::from(frames.iter().any(|(name, file)| name == "[unknown]" && is_generated(file)));
            self.functions.entry(leaf.clone()).or_default()[0] += 1;
            let mut names: Vec<_> = frames.into_iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            names.into_iter().for_each(|name| self.functions.entry(name).or_default()[1] += 1);
        }
    }
}

/// Whether perf means memory of no file: by the map of names that it has for it, or by none.
fn is_generated(file: &str) -> bool {
    ["/tmp/perf-", "//anon", "/memfd:", "[unknown]", "[heap]"].iter().any(|start| file.starts_with(start))
}

/// A function without its parameters. The runtime calls methods `double [known] Known::Burn(int32)[OptimizedTier1]` in a perf map.
fn short(name: &str) -> String {
    let managed = name.split_once("] ").and_then(|(_, method)| method.split_once('('));
    match managed {
        Some((method, _)) => method.replace("::", "."),
        None => name.split('(').next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn shares_are_those_of_linux_perf() {
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return runtimes::skip("perf is not installed (Debian: linux-perf)");
    }
    // The oldest and the newest: each takes half a minute.
    let mut both = runtimes::with("known");
    if both.len() > 2 {
        both.drain(1..both.len() - 1);
    }
    runtimes::each_in_turn(both, |runtime| {
        // A machine that takes processors away makes samples that are less independent of each other: more of them say more.
        let (mut perf, mut ours) = (Shares::default(), Shares::default());
        for enough in [EXACT, 2 * EXACT, 4 * EXACT] {
            if let Err(why) = sample_named(runtime, &mut perf, &mut ours, enough) {
                return runtimes::skip(&why);
            }
            match difference(runtime, &perf, &ours) {
                None => return,
                Some(apart) if enough == 4 * EXACT => panic!("{runtime}: {apart}"),
                Some(apart) => eprintln!("{runtime}: {apart}; with more samples?"),
            }
        }
    });
}

/// Samples more programs with both until there are so many samples by dn-top in all. What perf has no names for is thrown away, with what dn-top found at
/// the same time. An error states why it cannot be done here.
fn sample_named(runtime: &Runtime, perf: &mut Shares, ours: &mut Shares, enough: u64) -> Result<(), String> {
    for _ in 0..ATTEMPTS {
        let (theirs, own) = sample(runtime, enough - ours.samples)?;
        let unnamed = theirs.unnamed_percent();
        if theirs.samples > own.samples / 2 && unnamed <= UNNAMED {
            perf.merge(theirs);
            ours.merge(own);
            return Ok(());
        }
        eprintln!("{runtime}: {} samples by perf, {} by dn-top, {unnamed:.1} % without a name; again", theirs.samples, own.samples);
    }
    panic!("{runtime}: perf lacks names or samples in {ATTEMPTS} recordings");
}

/// Samples a program with both until there are so many samples by dn-top: what perf found, and what dn-top did.
fn sample(runtime: &Runtime, enough: u64) -> Result<(Shares, Shares), String> {
    let (mut perf, mut ours) = (Shares::default(), Shares::default());
    let mut program = runtime
        .program("known")
        .env("COMPlus_PerfMapEnabled", "1")
        .env("DOTNET_PerfMapEnabled", "1")
        // perf looks for names only of code that is in no file, which a second mapping of it is.
        .env("DOTNET_EnableWriteXorExecute", "0")
        // Every method gets its last version when it is first called. A later one is compiled by another thread, whose mappings `perf record -t` does
        // not see, at a time that depends on the load of the machine.
        .env("COMPlus_TieredCompilation", "0")
        .env("DOTNET_TieredCompilation", "0")
        .start();
    // All of them are called.
    program.spend(1);
    let (pid, place, mut recordings) = (program.pid().to_string(), folder(), Vec::new());
    while ours.samples < enough {
        let path = |end: &str| place.path().join(format!("{}.{end}", recordings.len()));
        let (data, file) = (path("data"), path("nettrace"));
        let (output, recorded) = std::thread::scope(|scope| {
            scope.spawn(|| program.carry_out("spend 8000"));
            let mut recording = Command::new("perf");
            recording.args(["record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-t", &pid, "-o"]).arg(&data);
            let recording = recording.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let output = Invocation::new(["cpu", &pid, "--duration", "6s", "-o", file.to_str().unwrap()]).run();
            send(recording.id(), Signal::INT);
            (output, recording.wait_with_output().unwrap())
        });
        if output.code == 4 || !data.exists() {
            return Err(format!("{}{}", output.stderr, String::from_utf8_lossy(&recorded.stderr)));
        }
        ours.add_file(&file, program.pid().into());
        recordings.push(data);
    }
    // The last names are written when it ends.
    program.finish();
    // .NET Core 3.1 writes its map elsewhere.
    let map = Path::new("/tmp").join(format!("perf-{pid}.map"));
    let own = program.folder().join(map.file_name().unwrap());
    if own.exists() {
        std::fs::copy(own, &map).unwrap();
    }
    for data in &recordings {
        let script = Command::new("perf").args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]).arg(data).output().unwrap();
        perf.add_script(&String::from_utf8_lossy(&script.stdout));
    }
    // Files of the runtime, which it does not remove.
    ["perf", "perfinfo"].iter().for_each(|name| drop(std::fs::remove_file(format!("/tmp/{name}-{pid}.map"))));
    Ok((perf, ours))
}

/// The first of the ten functions with the most samples, and of the program's own, of which both do not show the same.
fn difference(runtime: &Runtime, perf: &Shares, ours: &Shares) -> Option<String> {
    // Where perf finds debug information, dn-top has the name of the file alone.
    let mut names: Vec<_> = perf.functions.keys().filter(|name| ours.functions.contains_key(*name)).cloned().collect();
    names.sort_by_key(|name| std::cmp::Reverse(perf.functions[name][1]));
    names.truncate(10);
    names.extend(["Main", "Burn", "Seventy", "Twenty", "Ten"].map(|name| format!("Known.{name}")));
    let unnamed = perf.unnamed_percent();
    names.iter().find_map(|name| {
        let (theirs, ours) = (perf.of(name), ours.of(name));
        eprintln!("{runtime}: {theirs:.1?} % by perf, {ours:.1?} % by dn-top in {name}");
        let is_same = |(theirs, ours): (&f64, f64)| ours >= theirs - APART && ours <= theirs + unnamed + APART;
        let is_apart = !theirs.iter().zip(ours).all(is_same);
        is_apart.then(|| format!("{name}: {theirs:?} {ours:?}, {unnamed:.1} % without a name"))
    })
}
