//! Completions as invoked by the shells.

use std::fs;
use std::path::Path;

use crate::support::{Invocation, folder, runtimes};

/// Returns `PATH` with dn-top in it.
fn path() -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_dn-top")).parent().unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// Returns bash's completions of the last of these words, in this folder.
fn bash(folder: &Path, words: &[&str]) -> Vec<String> {
    let script = r#"
        eval "$(dn-top completions bash)"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        _clap_complete_dn_top dn-top "${!#}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let bash = Invocation::of("bash", ["-c", script, "bash"].iter().chain(words)).env("PATH", path());
    let output = bash.env("XDG_CONFIG_HOME", folder).current_dir(folder).run();
    assert_eq!((output.code, &*output.stderr), (0, ""), "{words:?}");
    output.stdout.lines().map(str::to_owned).collect()
}

/// Returns the output for the completion scripts of other shells.
fn answer(shell: &str, words: &[&str]) -> String {
    let asked = Invocation::new(["--"].iter().chain(words)).env("_DN_TOP_COMPLETE", shell).env("_CLAP_IFS", "\n");
    let output = asked.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).run();
    assert_eq!((output.code, &*output.stderr), (0, ""), "{words:?}");
    output.stdout
}

#[test]
fn bash_completes_commands_profiles_and_themes() {
    let folder = folder();
    fs::create_dir(folder.path().join("dn-top")).unwrap();
    fs::write(folder.path().join("dn-top/mine.toml"), "").unwrap();
    let table: [(&[&str], &[&str]); 6] = [
        (&["dn-top", "stat"], &["stats"]),
        (&["dn-top", "trace", "--flig"], &["--flight"]),
        (&["dn-top", "trace", "--profile", "gc-c"], &["gc-collect"]),
        (&["dn-top", "run", "--profile", "gc-c"], &["gc-collect"]),
        (&["dn-top", "--theme", "m"], &["mono", "mine.toml"]),
        (&["dn-top", "--color", "al"], &["always"]),
    ];
    for (words, expected) in table {
        assert_eq!(bash(folder.path(), words), expected, "{words:?}");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(answer(shell, &["dn-top", "trace", "--profile", "gc-c"]).contains("gc-collect"), "{shell}");
    }
}

#[test]
fn processes_are_completed_by_pid_and_by_name() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().start();
        let (folder, pid) = (folder(), program.pid().to_string());
        let row = Invocation::new(["info", &pid, "--json"]).run().json();
        for command in ["trace", "info", "gc", "heap", "perfmap"] {
            let completed = bash(folder.path(), &["dn-top", command, ""]);
            assert!(completed.contains(&pid), "{runtime} {command} {completed:?}");
            assert!(completed.iter().any(|word| row["name"] == **word), "{runtime} {command} {completed:?}");
        }
        assert_eq!(bash(folder.path(), &["dn-top", "trace", &pid]), [&*pid]);
        assert!(answer("fish", &["dn-top", "profiler", "attach", ""]).contains(&pid), "{runtime}");
    });
}

#[test]
fn bash_completions_omit_unsafe_file_names() {
    let folder = folder();
    // No program of other tests has such a name.
    for name in ["zq.nettrace", "zq$(touch b).nettrace", "zq;b.nettrace", "zq*.nettrace", "zq b.nettrace", "zq\nb.nettrace"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    for words in [["dn-top", "stats", "zq"], ["dn-top", "gc", "zq"]] {
        assert_eq!(bash(folder.path(), &words), ["zq.nettrace"], "{words:?}");
    }
    assert!(!folder.path().join("b").exists());
}
