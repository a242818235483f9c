//! Starts the dashboard with its options.

use std::io::{self, IsTerminal};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::args::{AUTO_THEME, Color, Dashboard};
use super::config;
use super::exit::{Exit, Failure};
use super::host::Host;
use super::interrupt;
use super::terminal::{TerminalKind, accepts_queries, has_light_background, is_utf8_locale};
use crate::app::{AutoWatch, Options};
use crate::model::{SafeText, TraceFile};
use crate::net::port::{self, Port};
use crate::net::user;
use crate::session::trace_file;
use crate::tui;
use crate::ui::Theme;

pub(super) fn run(options: Dashboard) -> Result<Exit, Failure> {
    let (look, runtime) = prepare(&options)?;
    let left = runtime.block_on(async {
        let host = Host::new(&options)?;
        let sources = host.sources.clone();
        if options.port.is_some() {
            port::raise_file_limit();
        }
        let port = options.port.as_deref().map(|path| Port::serve(path, &sources)).transpose().map_err(anyhow::Error::from)?;
        let app = Options {
            demo: options.demo,
            watch: options.watch.unwrap_or(if options.readonly { AutoWatch::Never } else { AutoWatch::Selected }),
            searched: sources.usual_directories().map(|folder| folder.display().to_string()).collect(),
            port: port.as_ref().map(|port| port.path().to_owned()),
            user: user::name(),
            elevate: user::elevate(),
            profiles: options.settings.profiles.clone(),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            ..app_options(&options, &look)
        };
        Ok::<_, Failure>(show(app, look, Some(tui::Machine { sources, port }), &options).await?)
    });
    finish(runtime, left)
}

/// `open FILE..`: opens recorded files in the dashboard.
pub(super) fn open(paths: &[PathBuf], options: &Dashboard) -> Result<Exit, Failure> {
    let files: Vec<TraceFile> = paths.iter().map(|path| trace_file(path)).collect::<Result<_, _>>().map_err(anyhow::Error::msg)?;
    let (look, runtime) = prepare(options)?;
    let app = Options { files, ..app_options(options, &look) };
    let left = runtime.block_on(show(app, look, None, options));
    finish(runtime, left.map_err(Failure::from))
}

/// Runs the dashboard on a worker thread of the task pool: with a thread of its own, each scan of the processes would wake two threads.
async fn show(app: Options, look: tui::Look, machine: Option<tui::Machine>, options: &Dashboard) -> anyhow::Result<()> {
    let dashboard = tui::Dashboard {
        options: app,
        look,
        machine,
        refresh: options.refresh,
        secrets: options.settings.secrets.clone(),
        terminal: tui::TerminalOptions { mouse: !options.no_mouse, title: !options.no_title && accepts_queries() },
    };
    tokio::spawn(tui::run(dashboard)).await.unwrap_or_else(|ended| resume_unwind(ended.into_panic()))
}

/// A task that still waits for a slow runtime or reads a file must not delay the shell prompt.
fn finish(runtime: Runtime, left: Result<(), Failure>) -> Result<Exit, Failure> {
    runtime.block_on(interrupt::before_exit());
    runtime.shutdown_timeout(Duration::from_millis(100));
    left.map(|()| Exit::Done)
}

/// Checks for a terminal, and creates the look and the async runtime, which every dashboard needs.
fn prepare(options: &Dashboard) -> Result<(tui::Look, Runtime), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "the dashboard needs a terminal; in scripts use `dn-top ps --json` and the other commands of `dn-top --help`",
        ));
    }
    Ok((look(options)?, super::runtime()?))
}

fn look(options: &Dashboard) -> Result<tui::Look, Failure> {
    let kind = match (TerminalKind::of_environment(), options.color) {
        (kind, Color::Always) => {
            // Otherwise crossterm omits colors if NO_COLOR is set.
            crossterm::style::force_color_output(true);
            kind.with_colors()
        }
        (kind, Color::Never | Color::Auto) => kind,
    };
    let (theme, by_background) = match options.theme.as_str() {
        _ if is_plain(options.color) => (Theme::mono(), None),
        AUTO_THEME => match (kind, has_light_background()) {
            (TerminalKind::Plain, _) => (Theme::mono(), None),
            (TerminalKind::Console, _) => (Theme::high_contrast(), None),
            (TerminalKind::Modern, Some(true)) => (Theme::light(), None),
            (TerminalKind::Modern, Some(false)) => (Theme::dark(), None),
            (TerminalKind::Modern, None) => (Theme::neutral(), accepts_queries().then(|| [Theme::dark(), Theme::light()])),
        },
        name => (Theme::named(name).map_or_else(|| config::theme(name), Ok)?, None),
    };
    let ascii = options.ascii || !is_utf8_locale() || kind < TerminalKind::Modern;
    let signs = |theme: Theme| if ascii { theme.ascii() } else { theme };
    let own = if is_plain(options.color) { Vec::new() } else { config::user_themes() };
    Ok(tui::Look { theme: signs(theme), own, by_background: by_background.map(|themes| themes.map(signs)), ascii })
}

/// Whether colors are disabled.
fn is_plain(color: Color) -> bool {
    match color {
        Color::Always => false,
        Color::Never => true,
        Color::Auto => std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    }
}

/// Returns the names of the available themes: none if colors are disabled.
fn themes(options: &Dashboard, look: &tui::Look) -> Vec<SafeText> {
    if is_plain(options.color) {
        return Vec::new();
    }
    let own = look.own.iter().map(|(name, _)| name.clone());
    Theme::NAMES.into_iter().map(SafeText::from).chain(own).collect()
}

/// The options that affect processes and recorded files alike.
fn app_options(options: &Dashboard, look: &tui::Look) -> Options {
    Options {
        readonly: options.readonly,
        filter: options.filter.clone().unwrap_or_default(),
        columns: options.columns,
        sort: options.sort,
        bell: options.bell,
        themes: themes(options, look),
        thresholds: options.settings.thresholds.clone(),
        output_name: options.settings.output_name.clone(),
        keys: options.settings.keys.clone(),
        ..Options::default()
    }
}
