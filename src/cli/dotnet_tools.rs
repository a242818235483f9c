//! Command lines of dotnet-trace, dotnet-counters, dotnet-gcdump, dotnet-stack and dotnet-dump: with `dotnet-` replaced by `dn-top ` they work as
//! documented. They are translated into commands of dn-top; an unsupported option is rejected or reported, never ignored.

mod options;
mod stopping_event;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use self::options::TOOLS;
pub(super) use self::options::{PORT_OPTIONS, port_target};
use super::awaited::port_path;
use super::command_at;

/// A command line of dn-top.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) arguments: Vec<OsString>,
    /// Differences from the other tool, one sentence each.
    pub(super) notes: Vec<String>,
}

struct ToolOption {
    names: &'static [&'static str],
    effect: Effect,
}

/// The translation of an option. A switch has the value `true` or `false`; `true` if omitted.
enum Effect {
    /// An option of dn-top with the same value.
    Same(&'static str),
    /// An option of dn-top without value, if the switch is on.
    Flag(&'static str),
    /// A note, if the switch is on.
    Note(&'static str),
    /// The value is kept for [`Tool::build`].
    Keep,
    Value(fn(&mut Line, &str) -> Result<(), String>),
    Switch(fn(&mut Line, &str) -> Result<(), String>),
}

impl ToolOption {
    fn is_switch(&self) -> bool {
        matches!(self.effect, Effect::Flag(_) | Effect::Note(_) | Effect::Switch(_))
    }

    fn apply(&self, line: &mut Line, value: &str) -> Result<(), String> {
        match self.effect {
            Effect::Same(option) => line.add(&[option, value]),
            Effect::Flag(option) if value == "true" => line.add(&[option]),
            Effect::Note(note) if value == "true" => line.notes.push(note.to_owned()),
            Effect::Flag(_) | Effect::Note(_) => {}
            Effect::Keep => line.kept.extend(self.names.iter().map(|name| (*name, value.to_owned()))),
            Effect::Value(apply) | Effect::Switch(apply) => apply(line, value)?,
        }
        Ok(())
    }
}

struct Tool {
    tool: &'static str,
    command: &'static str,
    /// None if the command is not supported.
    options: &'static [&'static [ToolOption]],
    /// Builds the command line of dn-top.
    build: fn(&mut Line) -> Result<(), String>,
}

/// The options parsed so far, and the resulting command line.
#[derive(Default)]
struct Line {
    /// The command of dn-top and its options.
    words: Vec<String>,
    target: Option<String>,
    positional: Vec<String>,
    /// The command after `--`.
    program: Option<Vec<OsString>>,
    /// Values of the options that the translation of the tool needs together, by the names of the option.
    kept: BTreeMap<&'static str, String>,
    /// `--resume-runtime`, if given.
    resume: Option<bool>,
    /// Whether it is a command of dn-top with options of the tool: what is not given has the default of dn-top.
    is_own: bool,
    help: bool,
    notes: Vec<String>,
}

impl Line {
    fn add(&mut self, words: &[&str]) {
        self.words.extend(words.iter().map(|word| (*word).to_owned()));
    }

    fn set_target(&mut self, target: &str) -> Result<(), String> {
        if self.target.replace(target.to_owned()).is_some() {
            return Err("give only one of --process-id, --name and --diagnostic-port".to_owned());
        }
        Ok(())
    }

    /// Whether the target is a diagnostic port to serve.
    fn listens(&self) -> bool {
        self.target.as_deref().and_then(port_path).is_some()
    }

    /// Inserts the command of dn-top before its options.
    fn command(&mut self, words: &[&str]) {
        self.words.splice(0..0, words.iter().map(|word| (*word).to_owned()));
    }

    fn target_command(&mut self, command: &str) -> Result<(), String> {
        self.no_program(command)?;
        if self.listens() && self.resume == Some(false) {
            return Err("--resume-runtime:false is not supported with a port to listen on: the program would stay suspended".to_owned());
        }
        self.command(&[command]);
        let target = self.target.take();
        self.words.extend(target);
        Ok(())
    }

    fn no_program(&self, command: &str) -> Result<(), String> {
        let refused = || format!("`{command}` cannot start a program: start it, and give its name or process id");
        if self.program.is_some() { Err(refused()) } else { Ok(()) }
    }

    fn file(&mut self, kind: &str) -> Result<(), String> {
        if self.help {
            self.positional.clear();
            return Ok(());
        }
        match <[String; 1]>::try_from(std::mem::take(&mut self.positional)) {
            Ok([file]) => {
                self.words.insert(1, file);
                Ok(())
            }
            Err(_) => Err(format!("expected the path of one {kind} file")),
        }
    }

    /// Takes an argument without option for the process, if none is given, and further ones for counters, as dotnet-counters 3 and 5 did.
    fn place_arguments(&mut self, tool: &Tool) {
        let takes = |name: &str| tool.options.iter().copied().flatten().any(|option| option.names.contains(&name));
        if takes("-p") && !takes("--report-type") && self.target.is_none() && self.program.is_none() && !self.positional.is_empty() {
            self.target = Some(self.positional.remove(0));
        }
        if takes("--counters") && !self.positional.is_empty() {
            let counters = std::mem::take(&mut self.positional).join(",");
            self.add(&["--counters", &counters]);
        }
    }

    fn append_extension(&mut self, extension: &str) {
        if let Some(file) = self.kept.get_mut("--output").filter(|file| !file.ends_with(&format!(".{extension}"))) {
            file.push('.');
            file.push_str(extension);
        }
    }

    fn take(&mut self, option: &str) -> Option<String> {
        self.kept.remove(option)
    }

    fn format(&mut self) -> Option<String> {
        self.take("--format").map(|format| format.to_ascii_lowercase())
    }

    fn write_to(&mut self) {
        if let Some(file) = self.take("--output") {
            self.add(&["--output", &file]);
        }
    }
}

/// Translates a command line, including the program name, if it is one of the other tools'.
///
/// # Errors
/// An option or command is not supported, or a value cannot be parsed: one sentence.
pub(super) fn translate(arguments: &[OsString]) -> Result<Option<Translated>, String> {
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    // Options before the command stay.
    let at = command_at(arguments);
    let Some(tool) = TOOLS.iter().find(|tool| word(at) == Some(tool.tool) && word(at + 1) == Some(tool.command)) else { return Ok(None) };
    let tool_name = format!("{} {}", tool.tool, tool.command);
    let line = Line::default();
    let Line { words, program, notes, .. } = build(tool, &arguments[at + 2..], line).map_err(|why| format!("{tool_name}: {why}"))?;
    let notes = notes.into_iter().map(|note| format!("{tool_name}: {note}")).collect();
    Ok(Some(Translated { arguments: joined(&arguments[..at], words, program), notes }))
}

/// Returns the command line of dn-top, including the program name, for a command of dn-top with options of the other tools, such as `trace api
/// --providers X`; `None` if it has other mistakes.
pub(super) fn with_own_options(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let at = command_at(arguments);
    let command = arguments.get(at)?;
    let tools = OWN_COMMANDS.iter().filter(|(own, ..)| command == own);
    let mut lines = tools.filter_map(|(_, tool, command)| {
        let tool = TOOLS.iter().find(|known| (known.tool, known.command) == (*tool, *command))?;
        build(tool, &arguments[at + 1..], Line { is_own: true, ..Line::default() }).ok()
    });
    lines.next().map(|line| joined(&arguments[..at], line.words, line.program))
}

/// Commands of dn-top, and the commands of the tools that have the same purpose.
const OWN_COMMANDS: [(&str, &str, &str); 8] = [
    ("trace", "trace", "collect"),
    ("export", "trace", "convert"),
    ("report", "trace", "report"),
    ("counters", "counters", "monitor"),
    ("counters", "counters", "collect"),
    ("heap", "gcdump", "collect"),
    ("stacks", "stack", "report"),
    ("dump", "dump", "collect"),
];

fn build(tool: &Tool, arguments: &[OsString], mut line: Line) -> Result<Line, String> {
    if !tool.options.is_empty() {
        read(tool, arguments, &mut line)?;
    }
    line.place_arguments(tool);
    (tool.build)(&mut line)?;
    match line.positional.first() {
        Some(word) => Err(format!("unexpected argument '{}'", word.escape_debug())),
        None => Ok(line),
    }
}

fn joined(before: &[OsString], words: Vec<String>, program: Option<Vec<OsString>>) -> Vec<OsString> {
    let mut all = before.to_vec();
    all.extend(words.into_iter().map(OsString::from));
    if let Some(program) = program {
        all.push("--".into());
        all.extend(program);
    }
    all
}

fn read(tool: &Tool, mut arguments: &[OsString], line: &mut Line) -> Result<(), String> {
    while let Some((argument, rest)) = arguments.split_first() {
        arguments = rest;
        if argument == "--" {
            line.program = Some(rest.to_vec());
            return Ok(());
        }
        let word = text(argument)?;
        if !word.starts_with('-') || word == "-" {
            line.positional.push(word.to_owned());
            continue;
        }
        let (name, joined) = word.split_once(['=', ':']).map_or((word, None), |(name, value)| (name, Some(value)));
        let option = tool.options.iter().copied().flatten().find(|option| option.names.contains(&name));
        let option = option.ok_or_else(|| format!("unknown option '{}'", name.escape_debug()))?;
        let next = || rest.first().map(|value| text(value)).transpose();
        let value = match (option.is_switch(), joined) {
            (_, Some(value)) => value,
            (false, None) => {
                let value = next()?.ok_or_else(|| format!("{name} needs a value"))?;
                arguments = &rest[1..];
                value
            }
            (true, None) => match next()? {
                Some(value) if is_switch(value) => {
                    arguments = &rest[1..];
                    value
                }
                _ => "true",
            },
        };
        if !option.is_switch() {
            option.apply(line, value)?;
        } else if is_switch(value) {
            option.apply(line, &value.to_ascii_lowercase())?;
        } else {
            return Err(format!("{name} must be true or false, not '{}'", value.to_ascii_lowercase().escape_debug()));
        }
    }
    Ok(())
}

fn is_switch(value: &str) -> bool {
    value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false")
}

fn text(argument: &OsStr) -> Result<&str, String> {
    argument.to_str().ok_or_else(|| format!("'{}' is not UTF-8", argument.to_string_lossy().escape_debug()))
}

#[cfg(test)]
mod tests;
