//! Clicks and the wheel, on the lists of all scenes.

use crossterm::event::{KeyModifiers, MouseEvent, MouseEventKind};
use ratatui::layout::Rect;

use crate::app::test_app::TestApp;
use crate::app::{Msg, Overlay, Tab};
use crate::ui::tests::scenes::SCENES;
use crate::ui::tests::screen;

fn wheel_down(app: &mut TestApp, column: u16, row: u16) {
    app.send(Msg::Mouse(MouseEvent { kind: MouseEventKind::ScrollDown, column, row, modifiers: KeyModifiers::NONE }));
}

/// Returns the selected row, the first visible one, the number of all, and the area of the visible ones; `None` if there are fewer than two.
fn list(app: &TestApp) -> Option<(usize, usize, usize, Rect)> {
    let (view, geometry) = app.state.tab_view()?;
    let (len, rows) = (view.list.len(), geometry.rows());
    let first = view.cursor.window(len, rows.height.into()).start;
    (view.flame.is_none() && len > 1 && rows.height > 1).then_some((view.cursor.at, first, len, rows))
}

/// Returns the titles by which the open tab's list can be sorted, with their positions.
fn titles(app: &TestApp) -> Vec<(&'static str, u16, u16)> {
    let Some((view, geometry)) = app.state.tab_view() else { return Vec::new() };
    let columns = view.list.columns().into_iter().zip(view.list.slots(geometry.list)).filter(|(column, _)| column.sortable);
    columns.filter_map(|(column, slot)| slot.map(|(x, width)| (column.title, x + width - 1, geometry.list.y))).collect()
}

#[test]
fn lists_of_all_tabs_react_to_clicks_and_the_wheel() {
    let mut lists = 0;
    for (name, scene) in SCENES {
        let mut app = scene(120, 40);
        if app.state.overlay.is_some() {
            continue;
        }
        for tab in Tab::ALL {
            app.state.open_tab(tab);
            let Some((_, first, len, rows)) = list(&app).filter(|_| app.state.tab == tab) else { continue };
            lists += 1;
            let selected = |app: &TestApp| list(app).map(|(selected, ..)| selected);
            app.click(rows.x + 1, rows.y + 1);
            assert_eq!(selected(&app), Some(first + 1), "{name}: {tab:?}");
            app.click(rows.x + 1, rows.y);
            assert_eq!(selected(&app), Some(first), "{name}: {tab:?}");
            wheel_down(&mut app, rows.x + 1, rows.y);
            assert_eq!(selected(&app), Some((first + 3).min(len - 1)), "{name}: {tab:?}");
            for (title, x, y) in titles(&app) {
                app.click(x, y);
                let columns = app.state.tab_view().unwrap().0.list.columns();
                assert!(columns.iter().any(|column| column.title == title && column.sorted.is_some()), "{name}: {tab:?}: {title}");
            }
        }
    }
    assert!(lists > 200, "{lists}");
}

#[test]
fn lists_and_texts_over_the_panes_react_to_clicks_and_the_wheel() {
    let (mut lists, mut texts) = (0, 0);
    for (name, scene) in SCENES {
        let mut app = scene(120, 40);
        let picks = |app: &TestApp| {
            let list = app.state.pick_list()?;
            let (len, rows) = (list.list.len(), list.rows());
            (len > 2).then(|| (list.cursor.at, list.cursor.window(len, rows.height.into()).start, len, rows))
        };
        if let Some((selected, first, len, rows)) = picks(&app) {
            lists += 1;
            let other = if selected == first + 1 { first } else { first + 1 };
            app.click(rows.x, rows.y + (other - first) as u16);
            assert_eq!(picks(&app).map(|(selected, ..)| selected), Some(other), "{name}");
            wheel_down(&mut app, rows.x, rows.y);
            assert_eq!(picks(&app).map(|(selected, ..)| selected), Some((other + 3).min(len - 1)), "{name}");
        } else if let Some(Overlay::Help(_) | Overlay::Messages(_)) = &app.state.overlay {
            texts += 1;
            let before = screen(&app.state);
            wheel_down(&mut app, 60, 20);
            assert_ne!(screen(&app.state), before, "{name}");
        }
    }
    assert!(lists >= 8 && texts >= 1, "{lists} {texts}");
}

#[test]
fn titles_of_the_process_table_sort_it() {
    let mut app = TestApp::populated(160, 50);
    let layout = app.state.layout().list.unwrap();
    for slot in layout.columns {
        app.click(slot.x, layout.head.y);
        assert_eq!(app.state.list.sort().column, slot.column);
    }
}

/// As Enter does.
#[test]
fn a_click_keeps_the_filter_that_is_typed() {
    let mut app = TestApp::populated(120, 40);
    app.press("/e");
    let rows = app.state.layout().list.unwrap().rows;
    app.click(rows.x + 5, rows.y + 1);
    assert!(app.state.line.is_none());
    assert_eq!((app.state.list.filter().as_str(), app.state.list.cursor()), ("e", Some(1)));
    app.press("T/a");
    let rows = app.state.pick_list().unwrap().rows();
    app.click(rows.x, rows.y + 1);
    let list = app.state.pick_list().unwrap();
    assert_eq!((app.state.line.is_none(), list.filter.as_str(), list.cursor.at), (true, "a", 1));
}
