//! Output of each command for programs with secrets and terminal control sequences in their arguments and variables.

use std::fs;

use crate::support::{Invocation, folder, runtimes};

/// Not printed by any command unless requested.
const SECRET: &str = "hush";
/// A C1 control sequence, and characters that change the text direction.
const HOSTILE: &str = "\u{9b}2J\u{90}\u{202e}\u{2067}end";

const ARGUMENTS: [&str; 6] = [
    "--password",
    "hush-1",
    "--Db=postgres://app:hush-2@db/shop",
    "--store=AccountName=a;AccountKey=hush-3;More=b",
    "--passengers=4",
    HOSTILE,
];
const VARIABLES: [(&str, &str); 7] = [
    ("DB_PASS", "hush-4"),
    ("dbPass", "hush-5"),
    ("DATABASE_URL", "postgres://app:hush-6@db/shop"),
    ("STORE", "https://store/blob?sv=1&sig=hush-7"),
    ("SIGNING", "-----BEGIN PRIVATE KEY-----\nhush-8\n-----END PRIVATE KEY-----"),
    ("PASSENGERS", "many"),
    ("NOTE", HOSTILE),
];

#[test]
fn output_has_no_secrets_or_control_characters() {
    runtimes::each(runtimes::all(), |runtime| {
        // Supports only its own fixed arguments.
        if runtime.is_trimmed() {
            return;
        }
        let launch = ARGUMENTS.iter().fold(runtime.any(), |launch, argument| launch.arg(argument));
        let program = VARIABLES.iter().fold(launch, |launch, (name, value)| launch.env(name, value)).start();
        let pid = program.pid().to_string();
        let place = folder();
        let trace = place.path().join("a.nettrace");
        let trace = trace.to_str().unwrap();
        let modern = runtime.major() > 3;
        let mut commands: Vec<Vec<&str>> = vec![
            vec!["ps"],
            vec!["ps", "--json"],
            vec!["info", &pid],
            vec!["info", &pid, "--json"],
            vec!["trace", &pid, "--duration", "500ms", "--json", "-o", trace],
            vec!["stats", trace, "--json"],
            vec!["report", trace, "--json"],
        ];
        if modern {
            commands.extend([
                vec!["env", &pid],
                vec!["env", &pid, "--json"],
                vec!["env", &pid, "--json", "--reveal"],
                vec!["stacks", &pid, "--json"],
                vec!["heap", &pid, "--yes", "--json"],
                vec!["counters", &pid, "--format", "json", "--duration", "2s"],
            ]);
        }
        for words in commands {
            // Its socket is in a separate directory, which discovery searches.
            let output = Invocation::new(&words).run();
            let context = format!("{runtime} {words:?}: {}", output.stderr);
            assert_eq!(output.code, 0, "{context}");
            let all = format!("{}{}", output.stdout, output.stderr);
            let acts =
                |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c));
            assert!(!all.contains(acts), "{context} {all:?}");
            if words.contains(&"--reveal") {
                assert!((4..=8).all(|number| all.contains(&format!("{SECRET}-{number}"))), "{context} {all}");
                let variables = output.json();
                let note = &variables["variables"].as_array().unwrap().iter().find(|row| row["name"] == "NOTE").unwrap()["value"];
                assert_eq!(note, HOSTILE, "{context}: JSON says what is there");
            } else {
                assert!(!all.contains(SECRET), "{context} {all}");
            }
            match words[0] {
                "info" => assert!(all.contains("--password ***") && all.contains("postgres://app:***@db/shop"), "{context} {all}"),
                "env" => assert!(all.contains("many"), "{context}: {all}"),
                _ => {}
            }
        }
        assert!(fs::metadata(trace).is_ok_and(|file| file.len() > 0), "{runtime}");
    });
}
