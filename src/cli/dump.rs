//! `dump` and `perfmap`: files that a runtime writes on request.

use std::path::Path;

use super::exit::{Exit, Failure};
use super::host::Host;
use super::print::{self, json};
use super::target::{check_supported, connect, display_name, exchange_error, exit_code, target_path};
use super::{args, when};
use crate::ipc::{CommandCode, DumpFlags, DumpRequest, PerfMapKind};
use crate::model::{Bytes, Process, Usage, check_file_name, default_dump_path, reachable_path};
use crate::session::{self, DumpError, DumpNotice};

pub(super) async fn dump(host: &Host, arguments: &args::Dump) -> Result<Exit, Failure> {
    if let Some(path) = &arguments.output_path {
        check_file_name(path, "dmp").map_err(Failure::usage)?;
    }
    let (mut process, client) = connect(host, &arguments.target.target).await?;
    check_supported(&process, CommandCode::GenerateCoreDump)?;
    let failure = |error: DumpError| {
        let exit = if let DumpError::Exchange { error, .. } = &error { exit_code(error) } else { Exit::Failed };
        Failure::new(exit, error)
    };
    let mut request = dump_request(host, &process, arguments)?;
    let mut checked = session::check_dump(&client, &process, &request).await.map_err(failure)?;
    when::wait_running(host, &mut process, &client, &arguments.when).await?;
    if arguments.when.when.is_some() {
        // By now it may use more memory, and the default name has the time.
        process.usage = usage_now(host, &process).await.unwrap_or(process.usage);
        request = dump_request(host, &process, arguments)?;
        checked = session::check_dump(&client, &process, &request).await.map_err(failure)?;
    }
    if let Some(warning) = checked.warning {
        print::message(format_args!("the {warning}"));
    }
    print::message(format_args!("{} is paused while it writes {}", display_name(&process), request.path.as_str()));
    let report = |notice| match notice {
        DumpNotice::Written(bytes) => print::rewrite_line(format_args!("{} written", Bytes(bytes))),
        DumpNotice::Stalled(advice) => {
            print::rewrite_line("");
            print::message(advice);
        }
    };
    let dumped = session::dump(&client, &process, &request, report).await;
    print::rewrite_line("");
    let dumped = dumped.map_err(failure)?;
    let crash_report = dumped.crash_report.as_ref().map(|report| report.to_string_lossy().into_owned());
    if arguments.output.json {
        print::json(json!({
            "path": dumped.path.to_string_lossy(),
            "path_seen_here": dumped.reachable_path.to_string_lossy(),
            "bytes": dumped.bytes,
            // As seen here; null if none was requested or written.
            "crash_report": crash_report,
            "type": request.kind.name(),
            "duration_ms": dumped.took.as_millis() as u64,
        }))?;
    } else {
        let size = dumped.bytes.map_or("unknown size".to_owned(), |bytes| Bytes(bytes).to_string());
        print::message(format_args!("{size}, written in {:.1} s", dumped.took.as_secs_f64()));
        crash_report.iter().for_each(|report| print::message(format_args!("crash report: {report}")));
        print::text(|out| writeln!(out, "{}", dumped.reachable_path.display()))?;
    }
    Ok(Exit::Done)
}

fn dump_request(host: &Host, process: &Process, arguments: &args::Dump) -> Result<DumpRequest, Failure> {
    let given = arguments.output_path.as_ref().map(|path| target_path(process, path)).transpose()?;
    let path = match given {
        Some(path) if !session::is_folder(process, &path) => {
            if arguments.when.times > 1 {
                return Err(Failure::usage("--times writes several files: the output must be a folder"));
            }
            path
        }
        folder => {
            let mut first = default_dump_path(process, &host.settings.output_name, session::file_stamp());
            if let (Some(folder), Some(name)) = (&folder, first.file_name()) {
                first = Path::new(folder.as_str()).join(name);
            }
            target_path(process, &session::free_target_path(&first, &reachable_path(process, &first)))?
        }
    };
    let flags = DumpFlags { crash_report: arguments.crash_report, log: arguments.diag, ..DumpFlags::default() };
    Ok(DumpRequest { path, kind: arguments.kind, flags })
}

/// Returns the present memory and threads of a process that was found before.
async fn usage_now(host: &Host, process: &Process) -> Option<Usage> {
    let now = host.directory().ok()?.locate(&process.key.pid.to_string()).await.ok()?;
    (now.key == process.key).then_some(now.usage)
}

pub(super) async fn perf_map(host: &Host, target: &str, switch: args::Switch, kind: PerfMapKind, is_json: bool) -> Result<Exit, Failure> {
    let (mut process, client) = connect(host, target).await?;
    check_supported(&process, CommandCode::EnablePerfMap)?;
    host.start_program(&mut process, &client).await?;
    let enabled = switch == args::Switch::On;
    let files = session::perf_map(&client, &process, enabled.then_some(kind)).await.map_err(exchange_error)?;
    let files: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    if is_json {
        print::json(json!({ "enabled": enabled, "kind": kind.name(), "files": files }))?;
        return Ok(Exit::Done);
    }
    print::message(format_args!("perf maps of {} are {}", display_name(&process), if enabled { "on" } else { "off" }));
    if enabled && files.is_empty() {
        print::message("no file is visible from here yet; DOTNET_PerfMapJitDumpPath of the target may point elsewhere");
    }
    print::text(|out| files.iter().try_for_each(|file| writeln!(out, "{file}")))?;
    Ok(Exit::Done)
}
