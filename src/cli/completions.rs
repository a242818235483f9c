//! Shell completions: the script of a shell runs the program itself for the candidates, so that processes, profiles and themes are completed too.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use clap::{Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter, complete};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{CompleteEnv, Shell};

use super::args::{AUTO_THEME, Arguments};
use super::exit::{Exit, Failure};
use super::host::Host;
use super::{config, options_before_command, print, runtime};
use crate::clr::profiles;
use crate::model::Process;
use crate::ui::Theme;

/// Environment variable that the scripts set to the name of the shell.
const VARIABLE: &str = "_DN_TOP_COMPLETE";
const SHELLS: Shells<'static> = Shells(&[&PlainBash, &Elvish, &Fish, &Powershell, &Zsh]);
/// Timeout for the names of processes. A process that has not answered by then is completed by its pid only.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);

pub(super) fn script(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    if let Some(shell) = SHELLS.completer(&shell.to_string()) {
        shell.write_registration(VARIABLE, "dn-top", "dn-top", "dn-top", &mut script).map_err(anyhow::Error::from)?;
    }
    print::bytes(&script)?;
    Ok(Exit::Done)
}

/// Answers the completion request of a shell script, if the program was started by one. Returns whether it was.
///
/// # Errors
/// The shell is unknown, or the answer cannot be written.
pub(super) fn answer() -> clap::error::Result<bool> {
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| with_values(Arguments::command())).var(VARIABLE).shells(SHELLS);
    asked.try_complete(std::env::args_os(), folder.as_deref())
}

/// Adds the completers of arguments whose values depend on the machine.
fn with_values(command: Command) -> Command {
    let with_values_of = |arg: clap::Arg| match arg.get_id().as_str() {
        "target" | "targets" => arg.add(ArgValueCompleter::new(targets)),
        "source" => arg.add(ArgValueCompleter::new(|current: &OsStr| {
            targets(current).into_iter().chain(PathCompleter::file().complete(current)).collect::<Vec<_>>()
        })),
        "profile" => arg
            .add(ArgValueCandidates::new(|| profiles().iter().map(|profile| candidate(&profile.name, &profile.about)).collect::<Vec<_>>())),
        "theme" => arg.add(ArgValueCandidates::new(|| {
            let known = [AUTO_THEME].into_iter().chain(Theme::NAMES).map(OsString::from);
            known.chain(config::theme_files()).map(CompletionCandidate::new).collect::<Vec<_>>()
        })),
        _ => arg,
    };
    command.mut_args(with_values_of).mut_subcommands(with_values)
}

/// Returns the possible target processes, by pid and by name.
fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let processes = processes().unwrap_or_default();
    let attachable = || processes.iter().filter(|process| process.contact.is_attachable());
    // Not every process name is safe here: the shell could execute it, or it could be parsed as an option.
    let named: BTreeSet<&str> =
        attachable().map(|process| process.name.as_str()).filter(|name| is_plain(OsStr::new(name)) && !name.starts_with('-')).collect();
    let by_pid = attachable().map(|process| candidate(&process.key.pid.to_string(), &process.name));
    let begins = |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(current.as_encoded_bytes());
    by_pid.chain(named.into_iter().map(CompletionCandidate::new)).filter(begins).collect()
}

/// Lists the processes of this machine, or of the source that the options before the command select.
fn processes() -> Result<Vec<Process>, Failure> {
    // The words of the command line follow those of the script.
    let words = std::env::args_os().skip_while(|word| word != "--").skip(2);
    let options = options_before_command(words)?;
    runtime()?.block_on(async {
        let host = Host::new(&options)?;
        Ok(host.directory()?.refresh(ANSWER_TIMEOUT).await.map_err(anyhow::Error::from)?)
    })
}

fn candidate(value: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(about.to_owned().into()))
}

/// Whether a shell treats `word` as a single literal word.
fn is_plain(word: &OsStr) -> bool {
    word.to_str().is_some_and(|word| word.chars().all(|sign| sign.is_alphanumeric() || "_./@%+=:,-".contains(sign)))
}

/// The completer for bash, which would insert a name such as `$(id)` unquoted: candidates that are not plain are left out. The other shells quote
/// what they insert.
struct PlainBash;

impl EnvCompleter for PlainBash {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(&self, var: &str, name: &str, bin: &str, completer: &str, out: &mut dyn Write) -> io::Result<()> {
        Bash.write_registration(var, name, bin, completer, out)
    }

    fn write_complete(&self, command: &mut Command, words: Vec<OsString>, folder: Option<&Path>, out: &mut dyn Write) -> io::Result<()> {
        let number = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|number| number.parse().ok()).unwrap_or_default();
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let completed = complete(command, words, number, folder)?;
        let words = completed.iter().map(CompletionCandidate::get_value).filter(|word| is_plain(word));
        write!(out, "{}", words.filter_map(OsStr::to_str).collect::<Vec<_>>().join(&separator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_completed(command: &Command) {
        for arg in command.get_arguments().filter(|arg| arg.get_value_names().is_some_and(|names| names[0].ends_with("TARGET"))) {
            assert!(arg.get::<ArgValueCompleter>().is_some(), "{}: {arg}", command.get_name());
        }
        command.get_subcommands().for_each(assert_completed);
    }

    #[test]
    fn every_target_is_completed() {
        assert_completed(&with_values(Arguments::command()));
    }
}
