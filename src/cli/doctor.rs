//! `doctor`: checks what is visible and possible on this machine, with advice for what is not.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, json};
use super::ps::ANSWER_TIMEOUT;
use super::terminal::TerminalKind;
use crate::model::{Check, Contact, Counted, Grade};
use crate::net::machine_checks;
use crate::session::service_state;
use crate::tui::clipboard_destination;

pub(super) async fn run(host: &Host, is_json: bool) -> Result<Exit, Failure> {
    let mut checks = machine_checks(&host.sources);
    checks.extend(processes(host).await?);
    checks.push(perfetto().await);
    checks.extend([terminal(), locale(), clipboard()]);
    let document = |Check { subject, grade, finding, advice }: &Check| {
        let state = match grade {
            Grade::Good => "ok",
            Grade::Optional => "optional",
            Grade::Bad => "bad",
        };
        json!({ "subject": subject, "state": state, "finding": finding, "advice": advice })
    };
    let documents = || json!({ "checks": checks.iter().map(document).collect::<Vec<_>>() });
    print::result(is_json, documents, |out| {
        for Check { subject, grade, finding, advice } in &checks {
            writeln!(out, "{:<3}{subject:<13}{finding}", grade.word())?;
            if let Some(advice) = advice {
                writeln!(out, "{:16}{advice}", "")?;
            }
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

/// Returns the number of attachable processes and, for each reason why others are not, their number and an example.
async fn processes(host: &Host) -> Result<Vec<Check>, Failure> {
    let mut directory = host.directory()?;
    let rows = directory.refresh(ANSWER_TIMEOUT).await.map_err(anyhow::Error::from)?;
    let (mut answer, mut others) = (0, BTreeMap::<&str, (usize, String)>::new());
    for row in rows.iter().filter(|row| !row.is_stale_socket()) {
        match &row.contact {
            Contact::Trouble { kind, reason } => {
                let one = format!("{} ({}): {reason}", row.key.pid, row.name);
                others.entry(kind.word()).or_insert((0, one)).0 += 1;
            }
            Contact::Ok | Contact::Unknown => answer += 1,
        }
    }
    let mut checks = vec![attachable(answer)];
    checks.extend(
        others.into_iter().map(|(word, (count, one))| {
            Check::bad("processes", format!("{count} {word}, for example {one}"), "`dn-top ps` lists them all")
        }),
    );
    Ok(checks)
}

fn attachable(processes: u64) -> Check {
    let finding = format!("{:#} can be attached to", Counted(processes, ".NET process"));
    if processes == 0 { Check::optional("processes", finding) } else { Check::good("processes", finding) }
}

async fn perfetto() -> Check {
    match service_state(None).await {
        Ok((socket, state)) => Check::good("Perfetto", format!("{} answers at {socket}", state.version)),
        Err(error) => Check::optional("Perfetto", error.to_string()),
    }
}

fn terminal() -> Check {
    let term = std::env::var("TERM").unwrap_or_default();
    if !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        return Check::optional("terminal", "stdin or stdout is not a terminal, which the dashboard needs".to_owned());
    }
    let size = crossterm::terminal::size().map_or_else(|_| "of unknown size".to_owned(), |(width, height)| format!("{width}×{height}"));
    let (name, kind) = (if term.is_empty() { "without a name" } else { &term }, TerminalKind::of_environment().describe());
    Check::good("terminal", format!("{name} {size}, {kind}"))
}

fn locale() -> Check {
    if super::terminal::is_utf8_locale() {
        Check::good("locale", "has UTF-8".to_owned())
    } else {
        Check::bad("locale", "has no UTF-8: the dashboard draws with ASCII".to_owned(), "set LANG, such as to C.UTF-8")
    }
}

fn clipboard() -> Check {
    Check::good("clipboard", format!("copied text goes {}", clipboard_destination()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_is_not_a_success() {
        let checks = [0, 1, 2].map(attachable);
        let grades = checks.each_ref().map(|check| check.grade);
        assert_eq!(grades, [Grade::Optional, Grade::Good, Grade::Good]);
        assert_eq!(checks[0].finding.as_str(), "0 .NET processes can be attached to");
    }
}
