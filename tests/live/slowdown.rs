//! Why a process is slow: the first cause that is named is what is wrong with it.

use dn_top::app::{Cause, Evidence, Slowdown, Thresholds, slowdowns};
use dn_top::clr::{SLOW, select};
use dn_top::model::Recording;

use crate::numbers::serve;
use crate::recording_analysis::record;
use crate::support::runtimes::{self, Runtime};
use crate::support::screen::ENTER;
use crate::support::{Invocation, PATIENCE, folder, poll};

/// All causes in a recording as it stands.
fn weighed(recording: &Recording, runtime: &Runtime) -> Vec<Slowdown> {
    let analysis = recording.analysis.as_ref();
    analysis.map_or_else(Vec::new, |analysis| {
        let (threads, elapsed, what) = (&recording.threads, recording.elapsed, [SLOW.to_owned()]);
        slowdowns(&Evidence { analysis, threads, elapsed, what: &what, runtime: Some(runtime.major()), thresholds: &Thresholds::default() })
    })
}

/// Each trouble is made in a real program; its cause is the first one, with the method that is to blame where there is one.
#[test]
fn the_first_cause_is_what_is_wrong() {
    runtimes::each_async_in_turn(runtimes::with("known"), async |runtime| {
        for (command, cause, culprit) in [
            ("throw 100", Cause::Exceptions, "System.InvalidOperationException"),
            ("convoy 10 2000", Cause::Locks, "Known.Convoy.lambda_0"),
            ("occupy 6 2000", Cause::ThreadPool, "most wait in Known"),
            ("churn 2000", Cause::Gc, "large objects"),
            ("leak 6", Cause::Gc, "The heap grew from "),
            ("spend 2000", Cause::Cpu, "most of it in Known"),
        ] {
            let mut program = runtime.program("known").start();
            let place = folder();
            let config = select(&[SLOW], &[] as &[&str], None).unwrap().config;
            let recording = record(&mut program, config, &place.path().join("a.nettrace"), |program, look| {
                // On a machine that has much else to do, a thread that always runs takes less of a core.
                let named = |all: &[Slowdown]| {
                    all.first().is_some_and(|first| {
                        first.cause == cause && (first.is_problem() || cause == Cause::Cpu) && first.text.contains(culprit)
                    })
                };
                let seen = poll(PATIENCE, || {
                    program.carry_out(command);
                    Some(weighed(&look(), runtime)).filter(|all| named(all))
                });
                assert!(seen.is_some(), "{runtime}, {command}: {:#?}", weighed(&look(), runtime));
            })
            .await;
            // Over all of it, the same is true.
            let all = weighed(&recording, runtime);
            assert_eq!(all[0].cause, cause, "{runtime}, {command}: {all:#?}");
        }
    });
}

/// A program that waits for another: where its requests go to is named. Requests that are sent are reported from .NET 5 on.
#[test]
fn a_slow_dependency_is_the_first_cause() {
    runtimes::each_async_in_turn(runtimes::since(5, runtimes::with("web")), async |runtime| {
        let (_server, url) = serve(runtime);
        let mut program = runtime.program("fetch").start();
        let place = folder();
        let config = select(&[SLOW], &[] as &[&str], None).unwrap().config;
        let recording = record(&mut program, config, &place.path().join("a.nettrace"), |program, look| {
            let seen = poll(PATIENCE, || {
                program.carry_out(&format!("get 2 {url}/slow/1500"));
                weighed(&look(), runtime).into_iter().next().filter(|first| first.cause == Cause::Http && first.is_problem())
            });
            assert!(seen.is_some(), "{runtime}: {:#?}", weighed(&look(), runtime));
        })
        .await;
        let first = &weighed(&recording, runtime)[0];
        eprintln!("{runtime}: F: {}", first.text);
        assert!(first.cause == Cause::Http && first.text.contains(&format!("most time with {url}/slow/1500")), "{runtime}: {first:#?}");
    });
}

/// A program that does little else than write log messages: by which method.
#[test]
fn a_flood_of_log_messages_is_the_first_cause() {
    runtimes::each_async_in_turn(runtimes::with("web"), async |runtime| {
        let (mut server, url) = serve(runtime);
        let mut client = runtime.program("fetch").start();
        let place = folder();
        let config = select(&[SLOW], &[] as &[&str], None).unwrap().config;
        let recording = record(&mut server, config, &place.path().join("a.nettrace"), |_, look| {
            let seen = poll(PATIENCE, || {
                client.carry_out(&format!("get 1 {url}/log/1500"));
                weighed(&look(), runtime).into_iter().next().filter(|first| first.cause == Cause::Logging && first.is_problem())
            });
            assert!(seen.is_some(), "{runtime}: {:#?}", weighed(&look(), runtime));
        })
        .await;
        let first = &weighed(&recording, runtime)[0];
        eprintln!("{runtime}: F: {}", first.text);
        assert!(first.cause == Cause::Logging && first.text.contains("most by Web.WriteLog"), "{runtime}: {first:#?}");
    });
}

/// One key records and shows it; pressed again, it shows the recording that goes on.
#[test]
fn one_key_in_the_dashboard_names_the_cause() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        let mut screen = Invocation::new(["--watch", "never"]).screen(120, 40);
        screen.wait_for("COMMAND");
        let title = format!("{} {}", runtime.name_of("known"), program.pid());
        screen.keys(&format!(":{title}"));
        screen.keys(ENTER);
        screen.wait_for(&format!(" {title} ─"));
        screen.keys("F");
        screen.wait_for("recording  0:0");
        let seen = poll(PATIENCE, || {
            program.carry_out("throw 100");
            Some(screen.contents()).filter(|shown| shown.contains("Slow because of: Exceptions"))
        });
        let seen = seen.unwrap_or_else(|| screen.contents());
        for words in ["Slow because of: Exceptions", "stops at 0:30", "are System.InvalidOperationException"] {
            assert!(seen.contains(words), "{runtime}, {words}:\n{seen}");
        }
        screen.keys("1F");
        assert!(screen.wait_for("Slow because of: ").contains(" 1 recording "), "{runtime}");
        // Enter opens the tab of the cause.
        screen.keys(ENTER);
        screen.wait_for("COUNT");
        screen.keys("t");
        screen.wait_until("it is done", |shown| !shown.contains(" 1 recording "));
        screen.keys("qq");
        assert!(screen.wait_exit().success(), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}
