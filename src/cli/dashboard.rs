//! The dashboard, from its options.

use std::io::{self, IsTerminal};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::args::{AUTO_THEME, Color, Dashboard, Watch};
use super::config::{self, Settings};
use super::exit::{Exit, Failure};
use super::host::Host;
use crate::app::{AutoWatch, Options};
use crate::model::{SafeText, TraceFile};
use crate::net::discovery::Sources;
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
            port::make_room();
        }
        let port = options.port.as_deref().map(|path| Port::serve(path, &sources)).transpose().map_err(anyhow::Error::from)?;
        let dashboard = tui::Dashboard {
            options: Options { port: port.as_ref().map(|port| port.path().to_owned()), ..app_options(&options, &sources, &look) },
            look,
            machine: Some(tui::Machine { sources, port }),
            refresh: options.refresh,
            secrets: options.settings.secrets.clone(),
            terminal: terminal(&options),
        };
        show(dashboard).await?;
        Ok::<_, Failure>(Exit::Done)
    });
    // A task that still waits for a slow runtime must not hold the shell prompt back.
    runtime.shutdown_timeout(Duration::from_millis(100));
    left
}

/// `open FILE..`: the dashboard over recorded files.
pub(super) fn open(paths: &[PathBuf], options: &Dashboard) -> Result<Exit, Failure> {
    let files: Vec<TraceFile> = paths.iter().map(|path| trace_file(path)).collect::<Result<_, _>>().map_err(anyhow::Error::msg)?;
    let (look, runtime) = prepare(options)?;
    let filter = options.filter.clone().unwrap_or_default();
    let Dashboard { readonly, bell, columns, sort, .. } = *options;
    let Settings { keys, thresholds, output_name, .. } = options.settings.clone();
    let themes = themes(options, &look);
    let app = Options { files, filter, readonly, bell, columns, sort, themes, keys, thresholds, output_name, ..Options::default() };
    let dashboard = tui::Dashboard {
        options: app,
        look,
        machine: None,
        refresh: options.refresh,
        secrets: options.settings.secrets.clone(),
        terminal: terminal(options),
    };
    let left = runtime.block_on(show(dashboard));
    // A file that is still being read must not hold the shell prompt back.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(left.map(|()| Exit::Done)?)
}

/// Shows the dashboard on the thread of the task pool that is woken for it: with a thread of its own, two would be woken for each look at the processes.
async fn show(dashboard: tui::Dashboard) -> anyhow::Result<()> {
    tokio::spawn(tui::run(dashboard)).await.unwrap_or_else(|ended| resume_unwind(ended.into_panic()))
}

/// What every dashboard needs: a terminal, how it looks, and tasks.
fn prepare(options: &Dashboard) -> Result<(tui::Look, Runtime), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Failure::usage(
            "the dashboard needs a terminal; in scripts use `dn-top ps --json` and the other commands of `dn-top --help`",
        ));
    }
    Ok((look(options)?, super::runtime()?))
}

fn look(options: &Dashboard) -> Result<tui::Look, Failure> {
    let (theme, on_light) = match options.theme.as_str() {
        _ if is_plain(options.color) => (Theme::mono(), None),
        AUTO_THEME => match light_by_environment() {
            Some(true) => (Theme::light(), None),
            Some(false) => (Theme::dark(), None),
            None => (Theme::dark(), answers_queries().then(Theme::light)),
        },
        name => (Theme::named(name).map_or_else(|| config::theme(name), Ok)?, None),
    };
    let ascii = options.ascii || !speaks_utf8();
    let signs = |theme: Theme| if ascii { theme.ascii() } else { theme };
    let own = if is_plain(options.color) { Vec::new() } else { config::own_themes() };
    Ok(tui::Look { theme: signs(theme), own, on_light: on_light.map(signs), ascii })
}

/// Whether there are to be no colors.
fn is_plain(color: Color) -> bool {
    match color {
        Color::Always => false,
        Color::Never => true,
        Color::Auto => std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    }
}

/// The themes that can be chosen: none where there are to be no colors.
fn themes(options: &Dashboard, look: &tui::Look) -> Vec<SafeText> {
    if is_plain(options.color) {
        return Vec::new();
    }
    let own = look.own.iter().map(|(name, _)| name.clone());
    Theme::NAMES.into_iter().map(SafeText::from).chain(own).collect()
}

fn terminal(options: &Dashboard) -> tui::TerminalOptions {
    tui::TerminalOptions { mouse: !options.no_mouse, title: !options.no_title && answers_queries() }
}

/// Whether the background is light, where the terminal says so in COLORFGBG: two or three of the sixteen colors, the background last.
fn light_by_environment() -> Option<bool> {
    let colors = std::env::var("COLORFGBG").ok()?;
    let background: u8 = colors.rsplit(';').next()?.parse().ok()?;
    Some(background == 7 || (9..16).contains(&background))
}

/// Whether the terminal takes a query that it does not know for nothing, not for text.
fn answers_queries() -> bool {
    let kind = std::env::var("TERM").unwrap_or_default();
    !["", "dumb", "linux", "vt52"].contains(&kind.as_str()) && !kind.starts_with("vt1")
}

/// Whether the locale has more than ASCII. Without any locale the terminal is taken for a modern one.
pub(super) fn speaks_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

fn auto_watch(options: &Dashboard) -> AutoWatch {
    match options.watch {
        Some(Watch::Selected) => AutoWatch::Selected,
        Some(Watch::All) => AutoWatch::All,
        Some(Watch::Never) => AutoWatch::Never,
        None if options.readonly => AutoWatch::Never,
        None => AutoWatch::Selected,
    }
}

fn app_options(options: &Dashboard, sources: &Sources, look: &tui::Look) -> Options {
    Options {
        readonly: options.readonly,
        demo: options.demo,
        watch: auto_watch(options),
        filter: options.filter.clone().unwrap_or_default(),
        columns: options.columns,
        sort: options.sort,
        searched: sources.usual_directories().map(|folder| folder.display().to_string()).collect(),
        port: None,
        files: Vec::new(),
        bell: options.bell,
        user: user::name(),
        themes: themes(options, look),
        thresholds: options.settings.thresholds.clone(),
        output_name: options.settings.output_name.clone(),
        keys: options.settings.keys.clone(),
        processors: std::thread::available_parallelism().map_or(0, usize::from),
    }
}
