use std::sync::Arc;

use super::files::read_request;
use super::views::analyzed;
use crate::app::action::Context;
use crate::app::test_app::{TestApp, contents, process, published};
use crate::app::{AutoWatch, Focus, Msg, Options, Overlay, Shape, Tab};
use crate::ui::tests::scenes::opened;

/// Double-click interval, milliseconds.
const DOUBLE_CLICK_MS: u64 = 400;

fn titles(app: &TestApp) -> (u16, Vec<(&'static str, u16)>) {
    let (view, geometry) = app.state.tab_view().unwrap();
    let columns = view.list.columns();
    let slots = view.list.slots(geometry.list);
    (geometry.list.y, columns.iter().zip(slots).filter_map(|(column, slot)| Some((column.title, slot?.0))).collect())
}

/// Returns the texts of a column from the first row to the last.
fn column(app: &TestApp, title: &str) -> Vec<String> {
    let view = app.state.view_of(app.state.tab).unwrap();
    let at = view.list.columns().iter().position(|column| column.title == title).unwrap();
    (0..view.list.len()).map(|row| view.list.cell(row, at).into_text().to_string()).collect()
}

#[test]
fn clicking_a_column_title_sorts_the_list() {
    for (tab, title, ascends_first) in
        [("5", "TYPE", true), ("5", "COUNT", false), ("8", "EVENT", true), ("4", "REASON", true), ("7", "METHOD", true)]
    {
        let mut app = analyzed(tab);
        let before = column(&app, title);
        let (y, titles) = titles(&app);
        let x = titles.iter().find(|(name, _)| *name == title).unwrap().1;
        app.click(x, y);
        let sorted =
            app.state.view_of(app.state.tab).unwrap().list.columns().into_iter().find(|column| column.title == title).unwrap().sorted;
        assert!(sorted.is_some(), "{title}");
        let first = column(&app, title);
        let (mut a, mut b) = (before.clone(), first.clone());
        a.sort_unstable();
        b.sort_unstable();
        assert_eq!(a, b, "the rows are the same");
        if ascends_first {
            assert!(first.is_sorted_by_key(|text| text.to_lowercase()), "{first:?}");
        }
        app.wait(DOUBLE_CLICK_MS + 1);
        app.click(x, y);
        let reversed: Vec<_> = column(&app, title).into_iter().rev().collect();
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        if distinct.len() == first.len() {
            assert_eq!(reversed, first);
        }
        // A click on a row does not change the order.
        app.click(x, y + 1);
        assert_eq!(column(&app, title).into_iter().rev().collect::<Vec<_>>(), reversed);
    }
}

#[test]
fn sorting_by_keys_keeps_the_selected_row() {
    let mut app = analyzed("5↓");
    let selected = |app: &TestApp| {
        let view = app.state.view_of(Tab::Exceptions).unwrap();
        view.list.id(view.cursor.at)
    };
    let (before, types) = (selected(&app), column(&app, "TYPE"));
    // The type column is the third one.
    app.press(">>>");
    let ascending = column(&app, "TYPE");
    assert!(ascending.is_sorted() && ascending.len() == types.len());
    assert_eq!(selected(&app), before);
    app.press("r");
    assert!(column(&app, "TYPE").is_sorted_by(|a, b| a >= b));
    assert_eq!(selected(&app), before);
    app.press("<");
    assert_eq!(app.state.views.of(Tab::Exceptions).sort.unwrap().column, "RATE");
}

#[test]
fn a_double_click_opens_and_two_slow_clicks_do_not() {
    let mut app = TestApp::populated(120, 40);
    let rows = app.state.layout().list.unwrap().rows;
    app.click(rows.x + 5, rows.y + 1);
    app.wait(DOUBLE_CLICK_MS + 1);
    app.click(rows.x + 5, rows.y + 1);
    assert_eq!(app.state.focus, Focus::List);
    app.wait(DOUBLE_CLICK_MS / 2);
    app.click(rows.x + 5, rows.y + 1);
    assert_eq!(app.state.focus, Focus::Detail);
    // A double click opens the events of a type.
    let mut app = analyzed("8");
    let rows = app.state.tab_view().unwrap().1.rows();
    app.click(rows.x, rows.y);
    assert!(!app.state.views.events.single);
    app.click(rows.x, rows.y);
    assert!(app.state.views.events.single);
    // The same in a list over the panes, whose first row is selected when it opens.
    for (keys, list) in [("a", Context::Pick), (":", Context::Palette)] {
        let mut app = TestApp::populated(120, 40);
        app.press(keys);
        let rows = app.state.pick_list().unwrap().rows();
        app.click(rows.x, rows.y);
        app.wait(DOUBLE_CLICK_MS + 1);
        app.click(rows.x, rows.y);
        assert_eq!(app.state.context(), list);
        app.click(rows.x, rows.y);
        assert_ne!(app.state.context(), list);
    }
    // A double click starts no recording.
    let mut app = TestApp::populated(120, 40);
    app.press("⏎5");
    let body = app.state.tab_body().unwrap();
    app.take_effects();
    app.click(body.x + 3, body.y + 5);
    app.click(body.x + 3, body.y + 5);
    assert_eq!(app.take_effects(), []);
}

#[test]
fn flame_graph_frames_and_findings_can_be_clicked() {
    let mut app = analyzed("7ff");
    assert_eq!((app.state.context(), app.state.views.sampling.shape), (Context::Flame, Shape::Flame));
    let area = app.state.tab_view().unwrap().1.list;
    let name = |app: &TestApp| app.state.flame().unwrap().selected_frame().map(|frame| frame.name.clone());
    app.click(area.x + 2, area.y + 1);
    assert_eq!(name(&app).as_deref(), Some("System.Threading.Thread.StartCallback"));
    app.click(area.x + 2, area.y + 3);
    assert_eq!(name(&app).as_deref(), Some("Shop.Pricing.PriceEngine.PriceBasket"));
    let width = |app: &TestApp| app.state.flame().unwrap().selected_box().unwrap().width;
    let before = width(&app);
    app.click(area.x + 2, area.y + 3);
    assert!(width(&app) > before, "zoomed in");
    app.click(area.x + 2, area.bottom() - 1);
    assert_eq!(name(&app).as_deref(), Some("Shop.Pricing.PriceEngine.PriceBasket"), "there are words");

    let mut app = TestApp::with(Options { watch: AutoWatch::Selected, ..crate::app::test_app::options() }, 120, 40);
    app.send(crate::app::Msg::Processes(crate::app::test_app::sample_processes()));
    app.press("w");
    app.publish(&[Arc::clone(&published(700.0, 9e8, 41.0, 0.0, 0.0))]);
    let body = app.state.layout().detail.unwrap().body;
    assert_eq!(app.state.findings_of_selected()[0].finding.tab, Tab::Gc);
    app.click(body.x + 4, body.y + 5);
    assert_eq!(app.state.tab, Tab::Overview, "facts lead nowhere");
    app.click(body.x + 4, body.y);
    assert_eq!(app.state.tab, Tab::Gc);
}

/// Returns the lines of the screen that have the thumb of the scroll bar in this column.
fn thumb(app: &TestApp, x: u16) -> Vec<u16> {
    let screen = crate::ui::tests::screen(&app.state);
    let lines = (0..).zip(screen.lines()).filter(|(_, line)| line.chars().nth(x.into()) == Some('┃')).map(|(y, _)| y).collect();
    assert_ne!(lines, [0; 0], "no scroll bar:\n{screen}");
    lines
}

#[test]
fn scroll_bars_are_clicked_and_dragged_where_they_are_drawn() {
    let mut app = TestApp::new(120, 40);
    app.send(Msg::Processes((1..=100).map(|pid| process(pid, "Web")).collect()));
    let rows = app.state.layout().list.unwrap().rows;
    let x = rows.right() - 1;
    let lines = thumb(&app, x);
    assert_eq!((lines[0], app.state.list.offset()), (rows.y, 0));
    // Holding the thumb without moving it scrolls nothing.
    app.drag(&[(x, lines[0])]);
    assert_eq!(app.state.list.offset(), 0);
    app.drag(&[(x, lines[0]), (x + 3, 39)]);
    let shown = usize::from(rows.height);
    assert_eq!(app.state.list.offset(), 100 - shown);
    assert_eq!(app.state.list.cursor(), Some(100 - shown), "the selected row moves as far as needed");
    assert_eq!(thumb(&app, x).last(), Some(&(rows.bottom() - 1)));
    // A click below the middle.
    app.drag(&[(x, rows.y + rows.height / 2)]);
    let middle = app.state.list.offset();
    assert!((30..60).contains(&middle), "{middle}");
    assert_eq!(app.state.list.cursor(), Some(middle + shown - 1));
    let lines = thumb(&app, x);
    app.drag(&[(x, lines[0])]);
    assert_eq!(app.state.list.offset(), middle);
    // The button was released elsewhere: moving the pointer scrolls no more.
    app.drag(&[(3, rows.y)]);
    assert_eq!(app.state.list.offset(), middle);

    // A list in a tab, a text, and a list over the panes.
    let mut app = analyzed("8");
    app.send(Msg::Resize(120, 24));
    let window = |app: &TestApp| {
        let (view, geometry) = app.state.tab_view().unwrap();
        view.cursor.window(view.list.len(), geometry.rows().height.into())
    };
    let rows = app.state.tab_view().unwrap().1.rows();
    let x = rows.right();
    // The process table has a scroll bar in the same column.
    let top = thumb(&app, x).into_iter().find(|y| *y >= rows.y).unwrap();
    app.drag(&[(x, top), (x, 23)]);
    let len = app.state.tab_view().unwrap().0.list.len();
    assert!(window(&app).start > 0 && window(&app).end == len, "{:?} of {len}", window(&app));
    assert!(window(&app).contains(&app.state.view_cursor(Tab::Events).at));
    app.drag(&[(x, 23), (x, 0)]);
    let mut app = TestApp::populated(120, 24);
    app.press("?");
    let x = app.state.layout().reader().right() - 1;
    let lines = thumb(&app, x);
    app.drag(&[(x, lines[0]), (x, 23)]);
    assert!(matches!(&app.state.overlay, Some(Overlay::Help(help)) if help.reader.scroll > 20));
    assert_eq!(thumb(&app, x).last(), Some(&(app.state.layout().reader().bottom() - 2)));
    app.press("⎋:");
    let x = app.state.pick_list().unwrap().rows().right();
    let lines = thumb(&app, x);
    app.drag(&[(x, lines[0]), (x, 23)]);
    let list = app.state.pick_list().unwrap();
    assert_eq!(list.cursor.window(list.list.len(), list.rows().height.into()).end, list.list.len());
}

#[test]
fn range_of_a_file_is_dragged_on_its_timeline() {
    const SECOND: i64 = 1_000_000_000;
    for height in [40, 16] {
        let mut app = opened(120, height);
        let place = |app: &TestApp| app.state.open_file().unwrap().timeline(app.state.layout().detail.unwrap().body);
        let line = place(&app);
        let end = 50 * SECOND;
        let at = |seconds: u16| line.x + ((line.width - 1) * seconds).div_ceil(50);
        let near = |time: i64, seconds: i64| (time - seconds * SECOND).abs() < SECOND;
        app.take_effects();
        app.drag(&[(at(40), line.y), (at(20), line.y + 5)]);
        let (ticket, span) = read_request(&mut app);
        assert!(span.is_some_and(|(from, to)| near(from, 20) && near(to, 40)), "{span:?}");
        app.send(Msg::FileRead { ticket, result: Ok(contents(crate::ui::tests::analysis::scripted())) });
        if height < 40 {
            continue;
        }
        // A click moves the nearer end.
        app.drag(&[(at(10), line.bottom() - 1)]);
        let (_, span) = read_request(&mut app);
        assert!(span.is_some_and(|(from, to)| near(from, 10) && near(to, 40)), "{span:?}");
        app.drag(&[(at(45), line.y)]);
        let (_, span) = read_request(&mut app);
        assert!(span.is_some_and(|(from, to)| near(from, 10) && near(to, 45)), "{span:?}");
        // Nothing is read while the button is pressed, nor if the range is the same in the end.
        app.drag(&[(at(45), line.y)]);
        assert_eq!(app.take_effects(), []);
        // All of it.
        app.drag(&[(line.x, line.y), (at(25), line.y), (line.right() + 4, line.y)]);
        assert_eq!((read_request(&mut app).1, app.state.open_file().unwrap().end), (None, Some(end)));
    }
}
