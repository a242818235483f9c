//! Watching real processes: figures come, and no session stays behind.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dn_top::analysis::{CollectionMarks, CounterSnapshot, CountersSnapshot, RuntimeStats};
use dn_top::model::{Contact, Process};
use dn_top::net::discovery::Sources;
use dn_top::net::{Clients, Directory};
use dn_top::session::{Watch, watch};
use tokio::sync::watch::channel;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::numbers::serve;
use crate::support::runtimes;
use crate::support::screen::{ENTER, ctrl};
use crate::support::{Invocation, PATIENCE, Program, poll};

/// A session that is listened to, and what it reported last.
struct Watched {
    reported: Arc<Mutex<Option<CountersSnapshot>>>,
    stop: tokio::sync::watch::Sender<bool>,
    task: JoinHandle<Result<(), String>>,
}

/// A process as the dashboard sees it, once its runtime has answered.
async fn find(program: &Program) -> (Process, Clients) {
    let mut directory = Directory::new(Sources::machine()).unwrap();
    let began = Instant::now();
    loop {
        let rows = directory.refresh(Duration::from_secs(1)).await.unwrap();
        if let Some(process) = rows.into_iter().find(|row| row.key.pid == program.pid() && row.contact == Contact::Ok) {
            return (process, directory.clients());
        }
        assert!(began.elapsed() < PATIENCE, "{program:?} is not found");
        sleep(Duration::from_millis(100)).await;
    }
}

impl Watched {
    fn start(process: &Process, clients: &Clients, meters: bool) -> Self {
        let (client, reported) = (clients.of(process).unwrap(), Arc::new(Mutex::new(None)));
        let wanted = Watch { process: process.clone(), interval: Duration::from_secs(1), meters };
        let (stop, stopped) = channel(false);
        let tell = Arc::clone(&reported);
        let task = tokio::spawn(async move {
            let publish = |counters| {
                *tell.lock().unwrap() = Some(counters);
                std::future::ready(())
            };
            watch(&client, &wanted, stopped, publish).await
        });
        Self { reported, stop, task }
    }

    /// Waits until what was reported is as it should be.
    async fn until<T>(&self, what: &str, is: impl Fn(&CountersSnapshot) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = self.reported.lock().unwrap().as_ref().and_then(&is) {
                return found;
            }
            assert!(!self.task.is_finished() && began.elapsed() < PATIENCE, "timed out waiting for {what}: {:?}", self.reported);
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn end(self) -> Result<(), String> {
        self.stop.send(true).unwrap();
        self.task.await.unwrap()
    }
}

/// Threads of a runtime that serve sessions. 3.1 does not name its threads.
fn sessions(program: &Program) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", program.pid())).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    // The one that serves its socket has the same name, a little later than it answers.
    names.filter(|name| name.trim() == ".NET EventPipe").count().saturating_sub(1)
}

#[test]
fn figures_come_from_every_runtime_and_no_session_stays() {
    runtimes::each_async(runtimes::all_and_single_files(), async |runtime| {
        let mut program = runtime.any().start();
        let (process, clients) = find(&program).await;
        // The second session finds what the first left behind.
        for _ in 0..2 {
            let watched = Watched::start(&process, &clients, false);
            let reported = |counters: &CountersSnapshot| {
                let RuntimeStats { heap, allocation_rate, gc_time_percent, exceptions, queue_length, .. } = counters.stats;
                Some((heap.filter(|heap| *heap > 1e5)?, allocation_rate?, gc_time_percent?, exceptions?, queue_length?))
            };
            let (heap, allocated, gc, exceptions, queue) = watched.until("all figures", reported).await;
            eprintln!("{runtime}: heap {heap}, {allocated} B/s, {gc} % in collections, {exceptions} exceptions/s, queue {queue}");
            assert!((0.0..=100.0).contains(&gc) && queue >= 0.0, "{runtime}");
            if !runtime.is_trimmed() {
                // The program allocates 10 kB a round and throws every tenth.
                watched.until("allocation", |counters| counters.stats.allocation_rate.filter(|rate| *rate > 1e4)).await;
                watched.until("exceptions", |counters| counters.stats.exceptions.filter(|rate| *rate > 0.0)).await;
                assert!(sessions(&program) > 0 || runtime.major() == 3, "{runtime}");
            }
            assert_eq!(watched.end().await, Ok(()), "{runtime}");
            let gone = poll(PATIENCE, || (sessions(&program) == 0).then_some(()));
            assert!(gone.is_some() && program.is_alive() && program.answers(), "{runtime}: a session stays");
        }
    });
}

/// A program that throws all the time never shows that it does not. 3.1 publishes twice in each interval, the second time with next to nothing.
#[test]
fn what_happens_all_the_time_is_never_shown_as_nothing() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let program = runtime.any().start();
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        let exceptions = |counters: &CountersSnapshot| {
            let mine = |counter: &&CounterSnapshot| matches!(counter.name.as_str(), "exception-count" | "dotnet.exceptions");
            // The first value is of another interval: since the start of the program, or of the session.
            let history = counters.counters.iter().find(mine)?.history.get(1..)?;
            (history.len() >= 6).then(|| history.to_vec())
        };
        let rates = watched.until("six values", exceptions).await;
        assert!(rates.iter().all(|(_, rate)| *rate > 0.0), "{runtime}: {rates:?}");
        assert_eq!(watched.end().await, Ok(()), "{runtime}");
    });
}

#[test]
fn a_watch_ends_with_its_process() {
    runtimes::each_async(runtimes::all(), async |runtime| {
        let mut program = runtime.any().start();
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        watched.until("figures", |counters| counters.stats.heap).await;
        program.finish();
        assert_eq!(watched.task.await.unwrap(), Ok(()));
    });
}

#[test]
fn meters_come_where_they_are_asked_for() {
    runtimes::each_async(runtimes::since(9, runtimes::with("meters")), async |runtime| {
        let program = runtime.program("meters").start();
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, true);
        let gauge = |counters: &CountersSnapshot| {
            let mine = |counter: &&CounterSnapshot| counter.group == "DnTop.Meter" && counter.name == "g";
            counters.counters.iter().find(mine)?.value
        };
        assert_eq!(watched.until("the gauge", gauge).await, 42.0);
        watched.until("the runtime's own figures", |counters| counters.stats.heap).await;
        assert_eq!(watched.end().await, Ok(()));
    });
}

#[test]
fn the_dashboard_shows_them_and_leaves_nothing_behind() {
    runtimes::each(runtimes::all(), |runtime| {
        for leave in ["q", &ctrl('c')] {
            let mut program = runtime.any().start();
            let pid = program.pid().to_string();
            let mut screen = Invocation::new(["--watch", "never", "--filter", &pid]).screen(160, 40);
            let row =
                |shown: &str| shown.lines().find(|line| line.contains(&format!(" {pid} {} ", runtime.name_of("work")))).map(str::to_owned);
            screen.wait_until("its row", |shown| row(shown).is_some_and(|row| row.contains(runtime.version) && row.contains("● running")));
            screen.keys("w");
            screen.wait_until("its figures", |shown| {
                shown.contains("EXC/S")
                    && row(shown).is_some_and(|row| row.contains("◎ watched") || row.contains("! "))
                    && !row(shown).unwrap().contains('–')
            });
            screen.keys(leave);
            assert!(screen.wait_exit().success());
            screen.assert_restored();
            let gone = poll(PATIENCE, || (sessions(&program) == 0).then_some(()));
            assert!(gone.is_some(), "{} sessions stay", sessions(&program));
            assert!(program.is_alive() && program.answers());
        }
    });
}

/// The first screen has the figures of the selected process, of every runtime, and the program notices nothing of it afterwards.
#[test]
fn the_overview_has_figures_without_a_key() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let pid = program.pid().to_string();
        let mut screen = Invocation::new(["--filter", &pid]).screen(120, 40);
        // Titles with their newest values.
        let graph =
            |shown: &str, title: &str| shown.split_once(title).is_some_and(|(_, value)| value.starts_with(|c: char| c.is_ascii_digit()));
        let graphs = ["CPU ", "GC heap ", "Time in GC ", "Allocation rate ", "Exceptions ", "Thread pool queue ", "Lock contention "];
        for title in graphs {
            screen.wait_until(title, |shown| graph(shown, title));
        }
        screen.wait_for("GC pauses ");
        screen.wait_until("findings", |shown| shown.contains("no findings") || shown.contains("/s exceptions"));
        // One session, and no row that says more than that it runs.
        assert!(sessions(&program) <= 1, "{} sessions", sessions(&program));
        assert!(!screen.contents().contains("◎ watched"));
        screen.keys("q");
        assert!(screen.wait_exit().success());
        let gone = poll(PATIENCE, || (sessions(&program) == 0).then_some(()));
        assert!(gone.is_some(), "{} sessions stay", sessions(&program));
        assert!(program.is_alive() && program.answers());
    });
}

/// What the tabs show of a process that was not recorded, of every runtime.
#[test]
fn the_tabs_of_a_recording_have_figures_without_one() {
    runtimes::each(runtimes::all(), |runtime| {
        let mut program = runtime.any().start();
        let pid = program.pid().to_string();
        let mut screen = Invocation::new(["--filter", &pid]).screen(120, 40);
        screen.wait_for("GC heap ");
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        for (tab, shown) in [
            ("4", &["Enter records pauses", "Time in GC ", "COLLECTIONS", "gen 2", "LOH"][..]),
            ("5", &["Enter records types, messages and stacks", "Exceptions "]),
            ("6", &["Enter records locks", "Thread pool queue ", "STATE", "sleeping", ".NET"]),
        ] {
            screen.keys(tab);
            for text in shown {
                // 3.1 does not name its threads.
                if runtime.major() > 3 || *text != ".NET" {
                    screen.wait_for(text);
                }
            }
        }
        // Of the main thread, which has the number of the process, two looks are known.
        let main = |shown: &str| {
            let line = shown.lines().find(|line| line.contains(&format!(" {pid} ")) && line.contains("ing "))?.to_owned();
            line.trim_start_matches(['│', ' ']).split_whitespace().next()?.parse::<f64>().ok()
        };
        screen.wait_until("its share of a core", |shown| main(shown).is_some());
        screen.keys("5");
        screen.wait_for("Enter records types");
        screen.keys(ENTER);
        screen.wait_for("◉ recording");
        screen.keys("q");
        screen.wait_for("Enter details");
        screen.keys("t");
        screen.wait_for("✓ done");
        screen.keys("q");
        assert!(screen.wait_exit().success());
        assert!(program.is_alive() && program.answers());
    });
}

/// Each collection is a mark with its generation, on every runtime.
#[test]
fn collections_are_marked_one_by_one() {
    runtimes::each_async(runtimes::with("known"), async |runtime| {
        let mut program = runtime.program("known").start();
        assert_eq!(program.line(), "ready");
        let (process, clients) = find(&program).await;
        let watched = Watched::start(&process, &clients, false);
        watched.until("figures", |counters| counters.stats.heap).await;
        for (generation, count) in [(0, 3), (1, 2), (2, 4)] {
            program.carry_out(&format!("collect {count} {generation}"));
        }
        let marked = |counters: &CountersSnapshot| match &counters.collections {
            CollectionMarks::Recorded(marks) if marks.len() >= 9 => Some(marks.clone()),
            _ => None,
        };
        let marks = watched.until("nine marks", marked).await;
        // The collector may choose an older generation than it is asked for.
        let asked = [0, 0, 0, 1, 1, 2, 2, 2, 2];
        assert!(marks.len() == 9 && marks.iter().zip(asked).all(|(mark, asked)| mark.generation >= asked), "{runtime}: {marks:?}");
        assert!(marks.iter().all(|mark| (1_000..1_000_000_000).contains(&mark.pause_ns)), "{runtime}: {marks:?}");
        // A program that does nothing but collect is marked as long as that is cheap, and then its counters go on without.
        program.command("collect 1000000 0");
        // .NET 10 leaves out most of the events.
        if process.runtime.as_ref().is_none_or(|version| version.major() < 10) {
            let rate = |counters: &CountersSnapshot| match counters.collections {
                CollectionMarks::TooMany(rate) => Some(rate),
                _ => None,
            };
            eprintln!("{runtime}: {:.0} B/s of collections, no longer marked", watched.until("too many", rate).await);
            watched.until("figures without marks", |counters| counters.stats.collections[0].filter(|rate| *rate > 10.0)).await;
        }
        assert_eq!(watched.end().await, Ok(()), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

/// Requests, those that failed, and how long they take: from every runtime what it can tell.
#[test]
fn requests_have_durations_where_the_runtime_publishes_them() {
    runtimes::each(runtimes::with("web"), |runtime| {
        let (server, url) = serve(runtime);
        let address = url.strip_prefix("http://").unwrap().to_owned();
        let pid = server.pid().to_string();
        let mut screen = Invocation::new(["--filter", &pid]).screen(160, 50);
        screen.wait_for("Requests ");
        let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let client = std::thread::spawn({
            let over = Arc::clone(&over);
            move || {
                for number in 0.. {
                    let path = if number % 4 == 0 { "status/503" } else { "a" };
                    let mut stream = std::net::TcpStream::connect(&address).unwrap();
                    std::io::Write::write_all(&mut stream, format!("GET /{path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
                    std::io::read_to_string(stream).unwrap();
                    if over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let has = |shown: &str, title: &str, words: &[&str]| {
            shown.split_once(title).is_some_and(|(_, rest)| {
                let line = rest.lines().next().unwrap_or_default();
                words.iter().all(|word| line.contains(word))
            })
        };
        screen.wait_until("failures", |shown| has(shown, "Requests ", &[" failed"]));
        if runtime.major() >= 8 {
            let shown = screen.wait_until("durations", |shown| has(shown, "p50/p95/p99 ", &["≈ ", "s, "]));
            assert!(!shown.contains("need .NET 8"), "{shown}");
        } else {
            let shown = screen.wait_until("why there are none", |shown| shown.contains("durations need .NET 8"));
            assert!(!shown.contains("p50/p95/p99"), "{shown}");
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        client.join().unwrap();
        screen.keys("q");
        assert!(screen.wait_exit().success());
        assert!(server.answers(), "{runtime}");
    });
}

/// The first screen names the cause, without a key. That few long waits for locks, requests to another service or log messages are the cause, only a
/// recording shows.
#[test]
fn the_overview_names_what_a_program_suffers_from() {
    runtimes::each(runtimes::before(10, runtimes::since(9, runtimes::with("known"))), |runtime| {
        for (command, finding) in [
            ("throw 100000000", "/s exceptions"),
            ("occupy 200 3000", " work items wait"),
            // Tasks that are waited for by threads of the pool, which the tasks need themselves.
            ("await 2000", " work items wait"),
            ("churn 60000", "/s gen 2 collections"),
            ("leak 100", "! gen 2 grew from "),
            ("induce 100000 100", "/s induced GCs"),
            ("compile 3600000", " of a core compiles methods"),
        ] {
            let mut program = runtime.program("known").start();
            assert_eq!(program.line(), "ready");
            program.command(command);
            let pid = program.pid().to_string();
            let mut screen = Invocation::new(["--filter", &pid]).screen(120, 40);
            let began = Instant::now();
            let line = |shown: &str| shown.lines().find(|line| line.contains("│ ! ") && line.contains(finding)).map(str::to_owned);
            let shown = screen.wait_until(finding, |shown| line(shown).is_some());
            let line = line(&shown).unwrap_or_default();
            eprintln!("{runtime}: {command}: {:.1} s, no key: {}", began.elapsed().as_secs_f64(), line.trim_matches(['│', ' ', '┃']));
            assert!(began.elapsed() < Duration::from_secs(30), "{runtime}: {command}");
            screen.keys("q");
            assert!(screen.wait_exit().success());
        }
    });
}

/// The dashboard goes on when the process that it watches ends.
#[test]
fn a_process_that_is_watched_without_a_key_may_end() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let pid = program.pid().to_string();
        let mut screen = Invocation::new(["--filter", &pid]).screen(120, 40);
        screen.wait_for("GC heap ");
        drop(program);
        screen.wait_gone("GC heap ");
        screen.keys("q");
        assert!(screen.wait_exit().success());
        screen.assert_restored();
    });
}

#[test]
fn an_older_runtime_has_no_meters_all_at_once() {
    runtimes::each(runtimes::before(9, runtimes::all()), |runtime| {
        let mut program = runtime.any().start();
        let pid = program.pid().to_string();
        let mut screen = Invocation::new(["--watch", "never", "--filter", &pid]).screen(120, 40);
        screen.wait_for(runtime.version);
        screen.keys("w");
        screen.wait_for("◎ watched");
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        screen.keys("9");
        screen.wait_for("- System.Runtime (");
        screen.keys("m");
        screen.wait_for(&format!("All meters at once need .NET 9; {} has an older one.", runtime.name_of("work")));
        screen.keys("qq");
        assert!(screen.wait_exit().success());
        assert!(program.is_alive() && program.answers());
    });
}

#[test]
fn the_dashboard_shows_the_values_that_instruments_were_given() {
    runtimes::each(runtimes::since(9, runtimes::with("meters")), |runtime| {
        let mut program = runtime.program("meters").start();
        let pid = program.pid().to_string();
        let mut screen = Invocation::new(["--watch", "never", "--filter", &pid]).screen(120, 40);
        screen.wait_until("its row", |shown| {
            shown.lines().any(|line| {
                line.contains(&format!(" {pid} {} ", runtime.name_of("meters")))
                    && line.contains(runtime.version)
                    && line.contains("● running")
            })
        });
        screen.keys("w");
        screen.wait_for("◎ watched");
        screen.keys(ENTER);
        screen.wait_for("Esc back");
        screen.keys("9");
        screen.wait_for("- System.Runtime (");
        screen.keys("m");
        screen.wait_for("- DnTop.Told (");
        screen.keys("/DnTop");
        screen.keys(ENTER);
        screen.wait_gone("System.Runtime");
        // What stands behind the name, first the value.
        let behind = |shown: &str, name: &str| {
            let line = shown.lines().find(|line| line.trim_start_matches(['│', ' ']).starts_with(&format!("{name} ")))?.to_owned();
            Some(line.split_once(name)?.1.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let reaches = |name: &str, value: &str| {
            screen.wait_until(&format!("{name} {value}"), |shown| behind(shown, name).is_some_and(|words| words[0] == value))
        };
        reaches("g", "42");
        // The others are listened to by then.
        reaches("level", "0");
        for command in ["count 7", "change 5", "change -3", "record 40 25", "gauge 17"] {
            program.carry_out(command);
        }
        for (name, value) in [("sold fruit=apple", "7"), ("sold fruit=pear", "14"), ("stock", "2"), ("level", "17")] {
            reaches(name, value);
        }
        assert_eq!(behind(&screen.contents(), "sold fruit=pear").unwrap()[1], "piece");
        // Of the histogram, all that was recorded: what came of it in the last second is over with that.
        screen.keys("G");
        for _ in 0..3 {
            screen.keys("k");
        }
        screen.wait_until("the histogram", |shown| shown.contains("(40 in all)") && shown.contains("(1.0 kB in all)"));
        program.carry_out("count 3");
        reaches("sold fruit=apple", "10");
        screen.keys("m");
        screen.wait_gone("fruit=apple");
        screen.keys("q");
        screen.wait_for("Enter details");
        screen.keys("q");
        assert!(screen.wait_exit().success());
        screen.assert_restored();
        assert!(program.is_alive() && program.answers());
    });
}
