//! A program sampled by dn-top and by Linux `perf` at the same time: both must show the same.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use dn_top::analysis::SampleFilter;
use dn_top::session::read_trace;

use crate::support::runtimes::{self, Runtime};
use crate::support::{Invocation, Signal, folder, send};

/// Number of samples for which 2 percentage points are about three standard deviations of the difference of two shares of 70 %, if all
/// samples are independent.
const MIN_SAMPLES: u64 = 8400;
/// Allowed difference between shares, percentage points.
const MAX_DIFFERENCE: f64 = 2.0;
/// Maximum samples unnamed by perf, percent: with more, the comparison is meaningless.
const MAX_UNNAMED: f64 = 2.0;
/// Maximum number of programs sampled because of names missing in perf.
const MAX_ATTEMPTS: u32 = 5;

/// Samples of one thread by function.
#[derive(Debug, Default)]
struct Shares {
    samples: u64,
    /// Samples with an unnamed frame in anonymous memory: it could be any method.
    unnamed: u64,
    /// Self and total samples of each function.
    functions: HashMap<String, [u64; 2]>,
}

impl Shares {
    /// Returns self and total, in percent.
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

    /// Returns the share of samples that could be in any method, in percent.
    fn unnamed_percent(&self) -> f64 {
        self.unnamed as f64 * 100.0 / self.samples.max(1) as f64
    }

    /// Adds the samples of a file written by dn-top.
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

    /// Adds the output of `perf script -F ip,sym,dso`: a line `ADDRESS FUNCTION (FILE)` for each frame, innermost first, and an empty line
    /// after each sample.
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

/// Returns whether perf's name of a file stands for anonymous memory, with or without a perf map.
fn is_generated(file: &str) -> bool {
    ["/tmp/perf-", "//anon", "/memfd:", "[unknown]", "[heap]"].iter().any(|start| file.starts_with(start))
}

/// Returns a function without its parameters. Perf maps of the runtime name methods `double [known] Known::Burn(int32)[OptimizedTier1]`.
fn short(name: &str) -> String {
    let managed = name.split_once("] ").and_then(|(_, method)| method.split_once('('));
    match managed {
        Some((method, _)) => method.replace("::", "."),
        None => name.split('(').next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn sample_shares_match_linux_perf() {
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return runtimes::skip("perf is not installed (Debian: linux-perf)");
    }
    // The oldest and the newest: each takes half a minute.
    let mut both = runtimes::with("known");
    if both.len() > 2 {
        both.drain(1..both.len() - 1);
    }
    runtimes::each_in_turn(both, |runtime| {
        // On a machine with CPU contention, samples are less independent: more of them are needed.
        let (mut perf, mut ours) = (Shares::default(), Shares::default());
        for enough in [MIN_SAMPLES, 2 * MIN_SAMPLES, 4 * MIN_SAMPLES] {
            if let Err(why) = sample_named(runtime, &mut perf, &mut ours, enough) {
                return runtimes::skip(&why);
            }
            match difference(runtime, &perf, &ours) {
                None => return,
                Some(apart) if enough == 4 * MIN_SAMPLES => panic!("{runtime}: {apart}"),
                Some(apart) => eprintln!("{runtime}: {apart}; with more samples?"),
            }
        }
    });
}

/// Samples more programs with both until dn-top has this many samples in total. Programs for which perf lacks names are discarded, with
/// dn-top's samples of the same time. An error is the reason why this is impossible here.
fn sample_named(runtime: &Runtime, perf: &mut Shares, ours: &mut Shares, enough: u64) -> Result<(), String> {
    for _ in 0..MAX_ATTEMPTS {
        let (theirs, own) = sample(runtime, enough - ours.samples)?;
        let unnamed = theirs.unnamed_percent();
        if theirs.samples > own.samples / 2 && unnamed <= MAX_UNNAMED {
            perf.merge(theirs);
            ours.merge(own);
            return Ok(());
        }
        eprintln!("{runtime}: {} samples by perf, {} by dn-top, {unnamed:.1} % without a name; again", theirs.samples, own.samples);
    }
    panic!("{runtime}: perf lacks names or samples in {MAX_ATTEMPTS} recordings");
}

/// Samples a program with both until dn-top has this many samples: returns those of perf, and those of dn-top.
fn sample(runtime: &Runtime, enough: u64) -> Result<(Shares, Shares), String> {
    let (mut perf, mut ours) = (Shares::default(), Shares::default());
    let mut program = runtime
        .program("known")
        .env("COMPlus_PerfMapEnabled", "1")
        .env("DOTNET_PerfMapEnabled", "1")
        // perf resolves names only for code that is in no file; double-mapped code is in one.
        .env("DOTNET_EnableWriteXorExecute", "0")
        // Every method is fully optimized at its first call. Otherwise another thread would recompile it, at a time that depends on the load
        // of the machine, and `perf record -t` does not see that thread's mappings.
        .env("COMPlus_TieredCompilation", "0")
        .env("DOTNET_TieredCompilation", "0")
        .start();
    // Call all of the methods.
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
    // The last names are written at exit.
    program.finish();
    // .NET Core 3.1 writes its perf map elsewhere.
    let map = Path::new("/tmp").join(format!("perf-{pid}.map"));
    let own = program.folder().join(map.file_name().unwrap());
    if own.exists() {
        std::fs::copy(own, &map).unwrap();
    }
    for data in &recordings {
        let script = Command::new("perf").args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]).arg(data).output().unwrap();
        perf.add_script(&String::from_utf8_lossy(&script.stdout));
    }
    // Files that the runtime does not remove.
    ["perf", "perfinfo"].iter().for_each(|name| drop(std::fs::remove_file(format!("/tmp/{name}-{pid}.map"))));
    Ok((perf, ours))
}

/// Returns the first difference between both, among the ten functions with the most samples and the program's own.
fn difference(runtime: &Runtime, perf: &Shares, ours: &Shares) -> Option<String> {
    // If perf finds debug information, dn-top only has the file name.
    let mut names: Vec<_> = perf.functions.keys().filter(|name| ours.functions.contains_key(*name)).cloned().collect();
    names.sort_by_key(|name| std::cmp::Reverse(perf.functions[name][1]));
    names.truncate(10);
    names.extend(["Main", "Burn", "Seventy", "Twenty", "Ten"].map(|name| format!("Known.{name}")));
    let unnamed = perf.unnamed_percent();
    names.iter().find_map(|name| {
        let (theirs, ours) = (perf.of(name), ours.of(name));
        eprintln!("{runtime}: {theirs:.1?} % by perf, {ours:.1?} % by dn-top in {name}");
        let is_same = |(theirs, ours): (&f64, f64)| ours >= theirs - MAX_DIFFERENCE && ours <= theirs + unnamed + MAX_DIFFERENCE;
        let is_apart = !theirs.iter().zip(ours).all(is_same);
        is_apart.then(|| format!("{name}: {theirs:?} {ours:?}, {unnamed:.1} % without a name"))
    })
}
