//! Stacks of all threads, in the dashboard.

use crate::heap::dashboard;
use crate::support::runtimes;
use crate::support::{Invocation, TIMEOUT, poll};

/// Ten threads that wait for a lock are one row, and the thread that reads commands is another.
#[test]
fn one_key_shows_stacks_of_all_threads() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold-lock 600000");
        let mut screen = dashboard(Invocation::new(["--watch", "never"]), runtime.name_of("known"), &program);
        screen.keys("D");
        screen.wait_for("PROGRAM METHOD");
        for method in ["Known.Main", "HoldLock.lambda_"] {
            assert!(screen.wait_for(method).contains("threads"), "{runtime}");
        }
        // The frames of the selected stack, and its threads.
        assert!(screen.contents().contains("at "), "{runtime}:\n{}", screen.contents());
        // Samples again.
        screen.keys("D");
        screen.wait_for("D samples all threads again");
        // The threads have their top frames, and the age of these.
        screen.keys("6");
        screen.wait_for("TOP FRAME");
        let line = screen.wait_for(" ago");
        assert!(["System.", "Interop", "Known.", "Thread.", "Monitor.", "…"].iter().any(|part| line.contains(part)), "{runtime}: {line}");
        screen.keys("qq");
        assert!(screen.wait_exit().success(), "{runtime}");
        // The dashboard may have been closed during the second sampling, which an old runtime needs a moment to notice.
        assert!(poll(TIMEOUT, || program.answers().then_some(())).is_some(), "{runtime}");
    });
}

#[test]
fn idle_threads_are_listed_last() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("occupy 4 100");
        let pid = program.pid().to_string();
        let is_last = || {
            let document = Invocation::new(["stacks", &pid, "--json"]).run().json();
            let stacks = document["stacks"].as_array().unwrap();
            let place = |method: &str| stacks.iter().position(|stack| stack["frames"].to_string().contains(method));
            let (workers, main) = (place("LowLevelLifoSemaphore.WaitNative")?, place("Known.Main").unwrap());
            (workers > main && stacks[workers]["threads"].as_array().unwrap().len() > 1).then_some(())
        };
        // The thread pool of 3.1 is native code. At first, its threads spin.
        assert!(runtime.major() == 3 || poll(TIMEOUT, is_last).is_some(), "{runtime}");
        assert!(program.answers(), "{runtime}");
    });
}

/// The first sample of a thread may not show whether it runs or waits: on .NET 9, a thread waiting for a lock looks as if it were running.
#[test]
fn first_sample_does_not_decide_thread_state() {
    runtimes::each(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold-lock 600000");
        let pid = program.pid().to_string();
        let document = Invocation::new(["stacks", &pid, "--json"]).run().json();
        let stacks = document["stacks"].as_array().unwrap();
        let is_in = |method: &str| {
            stacks.iter().any(|stack| stack["frames"].as_array().unwrap().iter().any(|frame| frame.as_str().unwrap().contains(method)))
        };
        assert!(is_in("Known.Main") && is_in("HoldLock"), "{runtime}: {document:#}");
        // The thread that enables the providers of this session is no part of the program.
        assert!(!is_in("EventPipeEventProvider") && !is_in("EtwEnableCallBack"), "{runtime}: {document:#}");
        assert!(stacks.iter().all(|stack| stack.get("waiting").is_none()), "{runtime}: {document:#}");
        let in_lock = if (5..10).contains(&runtime.major()) { "lock?" } else { "lock" };
        let waiting: Vec<_> = stacks.iter().filter(|stack| stack["wait"] == in_lock).collect();
        assert!(waiting.len() == 1 && waiting[0]["frames"].to_string().contains("HoldLock"), "{runtime}: {document:#}");
        let text = Invocation::new(["stacks", &pid]).run().stdout;
        assert!(
            text.contains(&format!("1 thread may wait for locks, in the stacks listed first.\n\n1 thread ({in_lock}): ")),
            "{runtime}: {text}"
        );
        assert!(text.contains("Waiting threads are included.") && !text.contains(", waiting"), "{runtime}: {text}");
        assert!(program.answers(), "{runtime}");
    });
}
