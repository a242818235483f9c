//! What every thread is doing, in the dashboard.

use crate::support::runtimes;
use crate::support::screen::ENTER;
use crate::support::{Invocation, PATIENCE, poll};

/// Ten threads that wait for a lock are one row, and the thread that reads commands another.
#[test]
fn one_key_shows_what_every_thread_is_doing() {
    runtimes::each_in_turn(runtimes::with("known"), |runtime| {
        let mut program = runtime.program("known").start();
        program.carry_out("hold-lock 600000");
        let mut screen = Invocation::new(["--watch", "never"]).screen(120, 40);
        screen.wait_for("COMMAND");
        let title = format!("{} {}", runtime.name_of("known"), program.pid());
        screen.keys(&format!(":{title}"));
        screen.keys(ENTER);
        screen.wait_for(&format!(" {title} ─"));
        screen.keys("D");
        screen.wait_for("PROGRAM METHOD");
        for method in ["Known.Main", "<HoldLock>"] {
            assert!(screen.wait_for(method).contains("threads"), "{runtime}");
        }
        // The frames of the selected stack, and the threads that have it.
        assert!(screen.contents().contains("at "), "{runtime}:\n{}", screen.contents());
        // Once more, for another moment.
        screen.keys("D");
        screen.wait_for("D samples all threads again");
        screen.keys("qq");
        assert!(screen.wait_exit().success(), "{runtime}");
        // It may have been left in the middle of the second time, which takes an old runtime a moment to notice.
        assert!(poll(PATIENCE, || program.answers().then_some(())).is_some(), "{runtime}");
    });
}
