//! Shell programs, and signals.

use super::*;

fn shell(script: &str) -> Launch {
    Launch::start(&["sh".into(), "-c".into(), script.into()], ChildOutput::Discarded, Orphans::Leave).unwrap()
}

#[tokio::test]
async fn exit_codes_are_those_of_a_shell() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let mut launch = shell(script);
        assert!(matches!(launch.next().await, LaunchEvent::Exited(exited) if exited == code), "{script}");
        assert_eq!(launch.others(), 0, "there is no runtime in it");
        assert_eq!(launch.end().await, code, "a program that has ended is not ended again");
    }
    let error = Launch::start(&["/no/such\u{1b}".into()], ChildOutput::Discarded, Orphans::Leave).unwrap_err().to_string();
    assert!(error.starts_with("/no/such\u{fffd} cannot be started: No such file"), "{error}");
}

#[tokio::test]
async fn program_and_its_children_are_terminated_then_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pids = |file: &str| std::fs::read_to_string(folder.path().join(file)).is_ok_and(|text| text.ends_with('\n'));
    let ready = async |file: &str| {
        while !pids(file) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut exits_on_sigterm = shell(&format!("sleep 100 & echo $! > {}/exits_on_sigterm; wait", folder.path().display()));
    ready("exits_on_sigterm").await;
    assert_eq!(exits_on_sigterm.end().await, 143);
    let began = Instant::now();
    let mut ignores_sigterm =
        shell(&format!("trap '' TERM; echo > {}/ignores_sigterm; while :; do sleep 1; done", folder.path().display()));
    ready("ignores_sigterm").await;
    assert_eq!(ignores_sigterm.end().await, 137);
    assert!(began.elapsed() >= TERMINATION_TIMEOUT);
}
