//! `ps` and `info`: the list of processes, and the details of one.

use std::io::{self, IsTerminal};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};

use super::document::{info_document, is_visible, process_document, state};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, json};
use super::target::{display_name, find, reason};
use crate::model::{Age, Bytes, Capability, Contact, Count, Counted, CpuLimit, OpenFiles, Percent, Process, SafeText, Trouble, Usage};
use crate::net::{Directory, user};

/// Time between the two scans that a CPU usage figure needs.
const SCAN_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout for the answers of all processes: slightly longer than the threshold for slow. Processes without an answer by then are listed as slow.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_millis(1100);

pub(super) async fn ps(host: &Host, json: bool) -> Result<Exit, Failure> {
    let mut directory = host.directory()?;
    let began = Instant::now();
    directory.refresh(ANSWER_TIMEOUT).await.map_err(anyhow::Error::from)?;
    // If all processes have answered early, wait for the second scan; slow ones have taken longer than this already.
    sleep_until(began + SCAN_INTERVAL).await;
    let rows = directory.refresh(Duration::ZERO).await.map_err(anyhow::Error::from)?;
    let more_stale = directory.more_stale_sockets();
    if json {
        print::json(json!({ "processes": rows.iter().map(process_document).collect::<Vec<_>>() }))?;
        if more_stale > 0 {
            print::message(format_args!("not listed: {:#}", Counted(more_stale as u64, "more stale socket")));
        }
        return Ok(Exit::Done);
    }
    let (stale, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(Process::is_stale_socket);
    let stale = stale.len() + more_stale;
    if rows.is_empty() && stale == 0 {
        match user::elevate() {
            Some(elevate) => print::message(format_args!(
                "no .NET process is visible to this user; for those of other users and of containers, run dn-top {elevate}"
            )),
            None => print::message("no .NET process is visible"),
        }
        return Ok(Exit::Done);
    }
    let columns = io::stdout()
        .is_terminal()
        .then(|| crossterm::terminal::size().ok())
        .flatten()
        .map(|(columns, _)| usize::from(columns))
        .filter(|columns| *columns > 0);
    // Versions of previews are long.
    let width = rows.iter().map(|row| runtime(row).chars().count()).max().unwrap_or(0).max(10);
    print::text(|out| {
        writeln!(
            out,
            "{:>7}  {:<24} {:<width$} {:>5} {:>7} {:>7}  {:<10} {:>8}  {:<9}  COMMAND",
            "PID", "NAME", "RUNTIME", "CPU%", "RSS", "THREADS", "USER", "UPTIME", "STATE"
        )?;
        for row in &rows {
            let runtime = runtime(row);
            let cpu = row.usage.cpu_percent.map_or("-".to_owned(), |percent| format!("{percent:.1}"));
            let user = row.user.clone().unwrap_or_else(|| row.uid.to_string().into());
            // That it is stopped is why it does not answer.
            let reason = row.contact.reason().filter(|_| row.usage.stopper.is_none());
            // A reason is longer than a state.
            let state = reason.map_or_else(|| format!("{:<9}  {}", state(row), row.short_command_line()), str::to_owned);
            let (pid, name) = (row.key.pid, &row.name);
            let known = |known: bool, figure: String| if known { figure } else { "-".to_owned() };
            let Usage { rss_bytes, threads, .. } = row.usage;
            let (memory, threads) = (known(rss_bytes > 0, Bytes(rss_bytes).to_string()), known(threads > 0, threads.to_string()));
            let line =
                format!("{pid:>7}  {name:<24} {runtime:<width$} {cpu:>5} {memory:>7} {threads:>7}  {user:<10} {:>8}  {state}", age(row));
            // As `ps` does.
            let end = columns.filter(|_| reason.is_none()).map_or(line.as_str(), |columns| print::cut(&line, columns));
            writeln!(out, "{}", end.trim_end())?;
        }
        if stale > 0 {
            let stale = Counted(stale as u64, "stale socket");
            writeln!(out, "{stale:#} of processes that were killed (`dn-top ps --json` lists them)")?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

fn runtime(row: &Process) -> String {
    match (&row.runtime, row.native_aot) {
        (Some(version), true) => format!("{version} AOT"),
        (Some(version), false) => version.to_string(),
        (None, true) => "AOT".to_owned(),
        (None, false) => "-".to_owned(),
    }
}

/// Lists the possible target processes on stderr.
pub(super) async fn candidates(host: &Host) -> Result<Exit, Failure> {
    let rows = host.directory()?.refresh(ANSWER_TIMEOUT).await.map_err(anyhow::Error::from)?;
    let attachable: Vec<_> = rows.iter().filter(|row| row.contact.is_attachable()).collect();
    if attachable.is_empty() {
        print::message("no .NET process can be attached to; `dn-top ps` shows why");
    } else {
        let line = |row: &&Process| {
            let line = format!("{:>9}  {:<24} {}", row.key.pid, row.name, row.short_command_line());
            line.trim_end().to_owned()
        };
        print::message(format_args!("processes:\n{}", attachable.iter().map(line).collect::<Vec<_>>().join("\n")));
    }
    Ok(Exit::Usage)
}

pub(super) async fn info(host: &Host, target: &str, json: bool) -> Result<Exit, Failure> {
    let mut directory = host.directory()?;
    let began = Instant::now();
    let (mut process, client) = find(host, &mut directory, target).await?;
    measure_cpu(&mut directory, &mut process, began).await;
    let (limits, resources) = client.map(|client| (client.cpu_limits(), client.resources())).unwrap_or_default();
    let limit = CpuLimit::lowest(&limits);
    if json {
        print::json(info_document(&process, limit, &resources))?;
    }
    // There are no facts about a process that has ended.
    if json || process.is_stale_socket() {
        return check_answered(&process);
    }
    print::text(|out| {
        for (name, fact) in facts(&process) {
            writeln!(out, "{name:<14}{fact}")?;
        }
        if let Some(limit) = limit {
            writeln!(out, "{:<14}{limit}", "CPU limit")?;
        }
        if let Some(memory) = resources.memory {
            let (limit, used) = (Bytes(memory.limit), Percent(memory.share()));
            writeln!(out, "{:<14}{limit}, of which its control group uses {used}", "Memory limit")?;
        }
        if let Some(OpenFiles { count, .. }) = resources.open_files {
            writeln!(out, "{:<14}{} of {}", "Open files", Count(count.used), Count(count.limit))?;
        }
        let Some(can) = process.known_capabilities() else { return Ok(()) };
        writeln!(out, "\nCapabilities (known: confirmed by the runtime; expected: inferred from its version)")?;
        for row in Capability::table(&can) {
            let how = row.available.unwrap_or_else(|why| format!("no: {why}"));
            writeln!(out, "  {:<22}{how}, {}", row.name, if row.known { "known" } else { "expected" })?;
        }
        Ok(())
    })?;
    check_answered(&process)
}

/// Sets the CPU usage of a process, which takes a second reading. It stays unknown if the process ends before that.
async fn measure_cpu(directory: &mut Directory, process: &mut Process, began: Instant) {
    if !is_visible(process) {
        return;
    }
    sleep_until(began + SCAN_INTERVAL).await;
    let again = directory.locate(&process.key.pid.to_string()).await.ok().filter(|again| again.key == process.key);
    process.usage.cpu_percent = again.and_then(|again| again.usage.cpu_percent);
}

/// Returns an error if the runtime was queried without success; the facts from /proc are printed in any case. A socket whose process has ended is
/// no target.
fn check_answered(process: &Process) -> Result<Exit, Failure> {
    let failed = |exit| Err(Failure::new(exit, anyhow::anyhow!("{}: {}", display_name(process), reason(process))));
    match &process.contact {
        Contact::Trouble { kind: Trouble::Stale, .. } => failed(Exit::NoTarget),
        Contact::Trouble { kind: Trouble::Slow | Trouble::Refused | Trouble::Timeout | Trouble::Unsupported, .. } => failed(Exit::Failed),
        Contact::Trouble { kind: Trouble::Denied | Trouble::Unverified | Trouble::Disabled, .. } | Contact::Unknown | Contact::Ok => {
            Ok(Exit::Done)
        }
    }
}

fn facts(process: &Process) -> [(&'static str, String); 15] {
    let unreported = match process.contact {
        Contact::Ok => "not known: the runtime is too old to report it",
        Contact::Trouble { kind: Trouble::Denied | Trouble::Unverified | Trouble::Disabled, .. } => "not known: it cannot be queried",
        Contact::Trouble { .. } | Contact::Unknown => "not known: it has not answered",
    };
    let reported = |fact: Option<String>| fact.unwrap_or_else(|| unreported.to_owned());
    let not_visible = "not known: the process is not visible from here";
    let seen = |fact: String| if is_visible(process) { fact } else { not_visible.to_owned() };
    let platform = || Some(format!("{}-{}", process.os.as_ref()?, process.arch.as_ref()?));
    let named = |text: &SafeText| Some(text.to_string()).filter(|text| !text.is_empty());
    [
        ("Process", process.key.pid.to_string()),
        ("Started", seen(format!("{} ago", age(process)))),
        ("Pid inside", process.ns_pid.to_string()),
        ("Name", reported(named(&process.name))),
        (
            "Runtime",
            format!(
                "{}{}",
                reported(process.runtime.as_ref().map(ToString::to_string)),
                if process.native_aot { " (NativeAOT)" } else { "" }
            ),
        ),
        ("Platform", reported(process.rid.as_ref().map(ToString::to_string).or_else(platform))),
        ("Command line", reported(named(&process.command_line))),
        ("User", process.user.as_ref().map_or_else(|| process.uid.to_string(), |user| format!("{user} ({})", process.uid))),
        ("Container", seen(process.container.as_deref().unwrap_or("none").to_owned())),
        ("Cookie", reported(process.cookie.map(|cookie| cookie.to_string()))),
        ("Socket", process.socket.as_ref().map_or_else(|| "none".to_owned(), |socket| socket.display().to_string())),
        (
            "CPU",
            seen(
                process
                    .usage
                    .cpu_percent
                    .map_or_else(|| "not known: it has ended".to_owned(), |percent| format!("{percent:.1} % of a core")),
            ),
        ),
        ("Memory", memory(process).unwrap_or_else(|| not_visible.to_owned())),
        ("State", state(process).to_owned()),
        ("Contact", process.contact.reason().unwrap_or("ok").to_owned()),
    ]
}

/// Describes the memory and threads, as far as the system reports them.
fn memory(process: &Process) -> Option<String> {
    let Usage { rss_bytes, threads, .. } = process.usage;
    let resident = (rss_bytes > 0).then(|| format!("{} resident", Bytes(rss_bytes)));
    let threads = (threads > 0).then(|| Counted(threads.into(), "thread").to_string());
    let known: Vec<_> = resident.into_iter().chain(threads).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

fn age(process: &Process) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Age(now.saturating_sub(Duration::from_millis(process.started_unix_ms))).to_string()
}
