//! Options before a command: each takes effect or is rejected, never ignored.

use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use super::args::perfetto::Perfetto;
use super::args::{Arguments, Command, Contention, EventList, Followable, FollowableStacks, Logs, Profiler, Salvage, Switch, recording};
use super::exit::Failure;
use crate::ipc::CommandCode;
use crate::net::Access;

/// The subject of a command.
enum Subject {
    /// Processes, which receive requests with this command code.
    Processes(CommandCode),
    /// A program that the command starts.
    Program,
    /// Recorded files, in the dashboard.
    OpenFiles,
    /// Recorded files without the dashboard, or nothing.
    NoProcess,
}

impl Subject {
    fn of(command: &Command) -> Self {
        match command {
            Command::Ps(_) | Command::Info(_) | Command::Doctor(_) => Self::Processes(CommandCode::ProcessInfo3),
            Command::Env { .. } => Self::Processes(CommandCode::ProcessEnvironment),
            Command::Trace(_)
            | Command::Counters(_)
            | Command::Cpu(_)
            | Command::Stacks(_)
            | Command::Perfetto(Perfetto { command: Some(_), .. })
            | Command::Salvage(Salvage { names: true, .. }) => Self::Processes(CommandCode::CollectTracing),
            Command::Heap(heap) => Self::file_or_process(heap.file()),
            Command::Slow(slow) => Self::file_or_process(recording(&slow.source)),
            Command::Jit(analyze)
            | Command::Gc(Followable { analyze, .. })
            | Command::Allocations(FollowableStacks { followable: Followable { analyze, .. }, .. })
            | Command::Exceptions(FollowableStacks { followable: Followable { analyze, .. }, .. })
            | Command::Contention(Contention { followable: FollowableStacks { followable: Followable { analyze, .. }, .. }, .. })
            | Command::Http(Followable { analyze, .. })
            | Command::Logs(Logs { followable: Followable { analyze, .. }, .. })
            | Command::Events(EventList { followable: FollowableStacks { followable: Followable { analyze, .. }, .. }, .. }) => {
                Self::file_or_process(recording(&analyze.source))
            }
            Command::Resume(_) => Self::Processes(CommandCode::ResumeRuntime),
            Command::SetEnv { .. } => Self::Processes(CommandCode::SetEnvironmentVariable),
            Command::StartupHook { .. } => Self::Processes(CommandCode::ApplyStartupHook),
            Command::Profiler(Profiler::Attach { .. }) => Self::Processes(CommandCode::AttachProfiler),
            Command::Profiler(Profiler::Startup { .. }) => Self::Processes(CommandCode::StartupProfiler),
            Command::Dump(_) => Self::Processes(CommandCode::GenerateCoreDump),
            Command::Perfmap { switch: Switch::On, .. } => Self::Processes(CommandCode::EnablePerfMap),
            Command::Perfmap { switch: Switch::Off, .. } => Self::Processes(CommandCode::DisablePerfMap),
            Command::Run(_) => Self::Program,
            Command::Open { .. } => Self::OpenFiles,
            Command::Profiles(_)
            | Command::Stats(_)
            | Command::Report(_)
            | Command::Diff(_)
            | Command::Export(_)
            | Command::Perfetto(_)
            | Command::Salvage(_)
            | Command::Completions { .. }
            | Command::Config
            | Command::Man
            | Command::ResumeOrphans { .. }
            | Command::Sim { .. } => Self::NoProcess,
        }
    }

    /// A command that reads a file, or records a process.
    fn file_or_process(file: Option<&Path>) -> Self {
        if file.is_some() { Self::NoProcess } else { Self::Processes(CommandCode::CollectTracing) }
    }

    /// Returns `Ok` if an option of the dashboard has an effect before this command; otherwise the reason, as the end of a sentence.
    fn check_option(&self, option: &str) -> Result<(), &'static str> {
        match (option, self) {
            ("readonly", Self::Processes(code)) if !Access::ReadOnly.allows(*code) => {
                Err("changes a process, which --readonly does not allow")
            }
            ("readonly", Self::Program) => Err("starts a program and records it, which --readonly does not allow"),
            ("readonly", _) | ("demo" | "sim", Self::Processes(_)) => Ok(()),
            ("log", Self::Processes(_) | Self::Program) => Ok(()),
            ("demo" | "sim", Self::Program) => Err("starts a real program, and not a simulated one"),
            ("demo" | "sim" | "port" | "watch" | "log", Self::OpenFiles) => Err("shows recorded files, and no processes"),
            (_, Self::OpenFiles) => Ok(()),
            ("demo" | "sim" | "log", Self::NoProcess) => Err("does not act on processes"),
            _ => Err("does not open the dashboard, and the option only affects the dashboard"),
        }
    }
}

/// Whether there is anything to log. Without a command the dashboard opens, which logs.
pub(super) fn is_logged(command: Option<&Command>) -> bool {
    command.is_none_or(|command| Subject::of(command).check_option("log").is_ok())
}

/// Rejects options before the command that have no effect on it.
pub(super) fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let (subject, name) = (Subject::of(command), matches.subcommand_name().unwrap_or_default());
    let options = Arguments::command();
    let given = options.get_arguments().filter(|option| {
        let source = matches.value_source(option.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    });
    for option in given {
        if let Err(why) = subject.check_option(option.get_id().as_str()) {
            let flag = option.get_long().unwrap_or_default();
            return Err(Failure::usage(format!("--{flag} cannot be given before `{name}`: `{name}` {why}")));
        }
    }
    // Requests to other processes are refused when they would be sent.
    if matches!(subject, Subject::Program) && matches.get_flag("readonly") {
        let why = "starts a program and records it, which readonly in the configuration file does not allow";
        return Err(anyhow::anyhow!("`{name}` {why}").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::cli::exit::Exit;

    /// Checks a command line with this default for `--readonly`.
    fn checked(readonly: &'static str, line: &str) -> Result<(), Exit> {
        let command = Arguments::command().mut_arg("readonly", |option| option.default_value(readonly));
        let matches = command.try_get_matches_from(line.split(' ')).unwrap();
        let command = Arguments::from_arg_matches(&matches).unwrap().command.unwrap();
        check(&command, &matches).map_err(|failure| failure.exit)
    }

    #[test]
    fn options_before_a_command_are_honored_or_rejected() {
        for (readonly, line, checked_as) in [
            ("false", "dn-top run -- app", Ok(())),
            ("false", "dn-top --readonly run -- app", Err(Exit::Usage)),
            ("true", "dn-top run -- app", Err(Exit::Failed)),
            ("true", "dn-top ps", Ok(())),
            ("false", "dn-top --readonly gc a.nettrace", Ok(())),
            ("false", "dn-top --readonly gc App", Err(Exit::Usage)),
            ("false", "dn-top --demo slow a.nettrace", Err(Exit::Usage)),
            ("false", "dn-top --demo slow App", Ok(())),
        ] {
            assert_eq!(checked(readonly, line), checked_as, "{readonly} {line}");
        }
    }
}
