//! Programs of the command interpreter.

use super::*;

fn interpreter(words: &[&str]) -> Launch {
    let command: Vec<OsString> = ["cmd", "/c"].iter().chain(words).map(OsString::from).collect();
    Launch::start(&command, ChildOutput::Discarded, Orphans::Leave).unwrap()
}

#[tokio::test]
async fn exit_codes_are_those_of_the_program() {
    // Larger codes do not fit in one byte.
    for (words, code) in [(&["exit", "0"], 0), (&["exit", "7"], 7), (&["exit", "300"], 1)] {
        let mut launch = interpreter(words);
        assert!(matches!(launch.next().await, LaunchEvent::Exited(exited) if exited == code), "{words:?}");
        assert_eq!(launch.end().await, code, "a program that has ended is not ended again");
    }
    let error = Launch::start(&[r"Z:\no\such".into()], ChildOutput::Discarded, Orphans::Leave).unwrap_err().to_string();
    assert!(error.starts_with(r"Z:\no\such cannot be started: "), "{error}");
}

#[tokio::test]
async fn program_and_its_children_are_terminated() {
    let began = Instant::now();
    let mut launch = interpreter(&["ping", "-n", "60", "127.0.0.1"]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_ne!(launch.end().await, 0);
    assert!(began.elapsed() < Duration::from_secs(30));
}
