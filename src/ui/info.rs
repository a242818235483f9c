//! Facts of the selected process, and what can be done with it.

use std::path::Path;
use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::{Row, State, ailment, capabilities};
use crate::model::{Age, Bytes, is_elsewhere, sanitise, seen_here, temporary_folder};

use super::canvas::{Canvas, wrap};
use super::table::{age, condition, runtime};

/// Columns of the facts' names.
const LABELS: u16 = 11;
/// Columns of the capabilities, beside the facts where there is room for both.
const TABLE: u16 = 42;

/// A line: its name, its text, and the text's style.
type Fact = (&'static str, String, Style);

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, body: Rect) {
    let theme = canvas.theme;
    let Some(row) = state.selected() else {
        canvas.text(body.x + 1, body.y, body.width, "No process is selected.", theme.dim);
        return;
    };
    let beside = body.width >= TABLE + 50;
    let room = if beside { body.width - TABLE - 3 } else { body.width.saturating_sub(2) };
    let lines = facts(canvas, state, row, room.saturating_sub(LABELS + 1));
    let table = capabilities(&row.process);
    let len = if beside { lines.len().max(table.len() + 1) } else { lines.len() + table.len() + 2 };
    let height = usize::from(body.height);
    let skip = state.details.scroll.min(len.saturating_sub(height));
    for ((label, text, style), y) in lines.iter().skip(skip).zip(body.y..body.bottom()) {
        canvas.text(body.x + 1, y, LABELS, label, theme.dim);
        canvas.text(body.x + 1 + LABELS, y, room - LABELS, text, *style);
    }
    if table.is_empty() {
        return;
    }
    let (x, first) = if beside { (body.right() - TABLE, 0) } else { (body.x + 1, lines.len() + 1) };
    let place = |line: usize| body.y + line.wrapping_sub(skip).min(height) as u16;
    let on_screen = |line: usize| line >= skip && line < skip + height;
    if on_screen(first) {
        canvas.text(x, place(first), TABLE, "Capabilities", theme.strong);
    }
    for (capability, line) in table.iter().zip(first + 1..) {
        if !on_screen(line) {
            continue;
        }
        let (sign, sign_style, text, style) = match &capability.available {
            Ok(text) => (theme.glyphs.yes, theme.good, text, theme.dim),
            Err(text) => (theme.glyphs.no, theme.warn, text, theme.warn),
        };
        canvas.text(x, place(line), 1, sign, sign_style);
        canvas.text(x + 2, place(line), 20, &capability.name, if capability.available.is_ok() { theme.text } else { theme.dim });
        canvas.text(x + 23, place(line), TABLE.saturating_sub(24), text, style);
    }
    let track = Rect { x: body.right(), width: 1, ..body };
    canvas.scroll_mark(track, skip, height, len);
}

fn facts(canvas: &Canvas<'_>, state: &State, row: &Row, room: u16) -> Vec<Fact> {
    let theme = canvas.theme;
    let process = &row.process;
    let dot = theme.glyphs.dot;
    let [(sign, _), (second, _), (word, style)] = condition(theme, row);
    let mut facts: Vec<Fact> = vec![("State", format!("{sign}{second} {word}"), style)];
    // The reason and the command line may be long, and matter most.
    let long = |label: &'static str, text: &str, style: Style, facts: &mut Vec<Fact>| {
        for (index, line) in wrap(text, room).into_iter().take(4).enumerate() {
            facts.push((if index == 0 { label } else { "" }, line, style));
        }
    };
    if let Some(reason) = process.contact.reason() {
        long("Why", reason, theme.warn, &mut facts);
    }
    let watch = state.watches.of(process.key).and_then(|watch| watch.counters.as_ref());
    if let Some(found) = watch.and_then(|counters| Some(ailment(counters)?.lint(counters))) {
        long("", &format!("{}: {}.  {}", found.finding, found.why, state.advice(&found)), theme.bad, &mut facts);
    }
    let platform = process.rid.as_deref().or(process.arch.as_deref());
    let version = match &process.runtime {
        Some(version) if process.native_aot => format!(".NET {version} (NativeAOT)"),
        _ => runtime(process).map_or_else(|| "not known".to_owned(), |version| format!(".NET {version}")),
    };
    facts.push((
        "Runtime",
        [Some(version.as_str()), platform].into_iter().flatten().collect::<Vec<_>>().join(&format!(" {dot} ")),
        theme.text,
    ));
    let pid = match process.ns_pid {
        same if same == process.key.pid => process.key.pid.to_string(),
        other => format!("{} {dot} {other} in its container", process.key.pid),
    };
    facts.push(("PID", pid, theme.text));
    let user = process.user.as_deref().map_or_else(|| process.uid.to_string(), |user| format!("{user} ({})", process.uid));
    facts.push(("User", user, theme.text));
    let cpu = process.usage.cpu_percent.map(|percent| format!("{percent:.1} % CPU {dot} ")).unwrap_or_default();
    facts.push(("Usage", format!("{cpu}{} memory {dot} {} threads", Bytes(process.usage.rss_bytes), process.usage.threads), theme.text));
    facts.push(("Uptime", Age(age(state, process).max(Duration::ZERO)).to_string(), theme.text));
    if let Some(container) = &process.container {
        facts.push(("Container", container.clone(), theme.text));
    }
    if is_elsewhere(process) {
        // What it writes is where it sees it, and we get at it on another way.
        let both = |path: &Path| sanitise(&format!("{} {dot} from here {}", path.display(), seen_here(process, path).display()));
        long("Dump folder", &both(&temporary_folder(process)), theme.text, &mut facts);
        long("Perf map", &both(Path::new(&format!("/tmp/perf-{}.map", process.ns_pid))), theme.text, &mut facts);
    }
    long("Command", &process.command_line, theme.text, &mut facts);
    if let Some(socket) = &process.socket {
        long("Socket", &sanitise(&socket.to_string_lossy()), theme.dim, &mut facts);
    }
    if let Some(cookie) = &process.cookie {
        facts.push(("Cookie", cookie.to_string(), theme.dim));
    }
    facts
}
