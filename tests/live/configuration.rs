//! A configuration file with keys, thresholds, secret patterns and file names, in the dashboard and on the command line.

use std::fs;

use crate::support::runtimes;
use crate::support::screen::{ENTER, ESC};
use crate::support::{Invocation, TIMEOUT, folder, poll};

const TEXT: &str = "watch = 'selected'\n\
    secret-patterns = ['acme_*_dsn']\n\
    output-name = 'of-{kind}-{pid}'\n\
    [keys]\ntrace = 'N'\nhelp = 'F2'\nwatch = 't'\n\
    [thresholds]\ncpu = 1\n";

#[test]
fn keys_thresholds_secrets_and_names_are_configurable() {
    runtimes::each(runtimes::all(), |runtime| {
        let program = runtime.any().env("ACME_MAIN_DSN", "hush").start();
        let (home, pid) = (folder(), program.pid().to_string());
        fs::create_dir(home.path().join("dn-top")).unwrap();
        let traces = home.path().join("traces");
        fs::create_dir(&traces).unwrap();
        fs::write(home.path().join("dn-top/config.toml"), format!("output-folder = '{}'\n{TEXT}", traces.display())).unwrap();
        let home = home.path().to_str().unwrap();
        if runtime.major() >= 5 {
            let shown = Invocation::new(["env", &pid]).env("XDG_CONFIG_HOME", home).run();
            assert!(shown.stdout.contains("ACME_MAIN_DSN=(masked") && !shown.stdout.contains("hush"), "{runtime}: {}", shown.stdout);
        }
        // A dump never overwrites another.
        for name in [format!("of-dump-{pid}.dmp"), format!("of-dump-{pid}_2.dmp")] {
            let dumped = Invocation::new(["dump", &pid, "--type", "mini", "--json"]).env("XDG_CONFIG_HOME", home).run().json();
            assert!(dumped["path"].as_str().unwrap().ends_with(&format!("/{name}")), "{runtime}: {dumped:#}");
        }
        let mut screen = Invocation::new::<&str>([]).env("XDG_CONFIG_HOME", home).screen(120, 40);
        screen.wait_for("COMMAND");
        screen.keys(&format!(":{} {pid}", runtime.name_of("work")));
        screen.keys(ENTER);
        // The hint line shows the configured key, and the default key has another function.
        screen.wait_for("N trace");
        screen.keys("N");
        screen.wait_for("1 recording");
        screen.keys("\x1bOQ");
        screen.wait_for("Start or stop recording");
        assert!(screen.contents().lines().any(|line| line.contains(" N ") && line.contains("Start or stop recording")), "{runtime}");
        screen.keys(ESC);
        screen.wait_until("the help closed", |shown| !shown.contains(" Keys ─"));
        screen.wait_for("N stop");
        let findings = |shown: &str| shown.contains("% of a core");
        screen.keys(&format!("{ENTER}1"));
        screen.wait_until("a finding of CPU above 1 %", findings);
        screen.keys("N");
        let file = traces.join(format!("of-trace-{pid}.nettrace"));
        assert!(poll(TIMEOUT, || file.exists().then_some(())).is_some(), "{runtime}: {}", screen.contents());
        screen.wait_for("N trace");
        screen.keys("qq");
        assert!(screen.wait_exit().success());
    });
}
