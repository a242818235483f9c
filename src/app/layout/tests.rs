//! Layouts at several terminal sizes.

use super::*;
use crate::model::FileKind;

/// An empty list with all columns.
pub(in crate::app) const INPUT: LayoutInput = LayoutInput {
    detail_focused: false,
    zoomed: false,
    containers: false,
    watching: false,
    row_kind: RowKind::Process,
    tab: Tab::Overview,
    rows: 0,
    columns: Columns::ALL,
};

const PROCESS: RowKind = RowKind::Process;
const FILE: RowKind = RowKind::File(FileKind::Trace);

#[test]
fn process_list_height_follows_its_row_count() {
    for (of, rows, height, expected) in [
        // The empty-list text needs room.
        (PROCESS, 0, 40, 12),
        (PROCESS, 1, 40, 1),
        (PROCESS, 5, 40, 5),
        (PROCESS, 500, 40, 12),
        (PROCESS, 500, 100, 36),
        (PROCESS, usize::MAX - 4, 24, 5),
        (FILE, 3, 24, 3),
        (FILE, usize::MAX, 40, 12),
    ] {
        let layout = Layout::new(120, height, LayoutInput { row_kind: of, rows, ..INPUT });
        assert_eq!(layout.list_height(), expected, "{rows} rows of {height} lines");
        let (list, detail) = (layout.list.unwrap().frame, layout.detail.unwrap().frame);
        assert_eq!((list.y, list.bottom(), detail.bottom()), (1, detail.y, height - 1));
    }
}

#[test]
fn wide_terminal_has_full_width_panes_and_tab_titles() {
    for width in [160, 200, 240] {
        let layout = Layout::new(width, 50, LayoutInput { rows: 9, ..INPUT });
        let (list, detail) = (layout.list.unwrap().frame, layout.detail.unwrap());
        assert_eq!((list.width, list.height, detail.frame.width), (width, 12, width));
        assert!(detail.tabs.iter().all(|slot| slot.title == slot.tab.titles()[0]));
    }
    let low = Layout::new(200, 16, INPUT);
    assert!(low.list.unwrap().frame.width < 200 && low.detail.is_some());
}

#[test]
fn every_tab_title_fits_at_common_widths() {
    for width in [60, 80, 120, 160] {
        let layout = Layout::new(width, 24, LayoutInput { detail_focused: true, ..INPUT });
        let detail = layout.detail.unwrap();
        assert!(detail.tabs.iter().all(|slot| usize::from(slot.place.width) >= slot.title.len()), "{width}: {:?}", detail.tabs);
    }
}

#[test]
fn tabs_show_their_keys_where_there_is_room() {
    let keys = |width, of| {
        let detail = Layout::new(width, 24, LayoutInput { detail_focused: true, row_kind: of, ..INPUT }).detail.unwrap();
        detail.tabs.iter().map(|slot| slot.key).collect::<String>()
    };
    assert_eq!([80, 100, 160, 240].map(|width| keys(width, PROCESS)), ["", "1234567890", "1234567890", "1234567890"]);
    assert_eq!(keys(120, FILE), "1234567890");
}

#[test]
fn open_tab_is_visible_in_narrow_terminals() {
    for (width, tab) in [40, 47, 60, 80].into_iter().flat_map(|width| Tab::ALL.map(|tab| (width, tab))) {
        let detail = Layout::new(width, 24, LayoutInput { detail_focused: true, tab, ..INPUT }).detail.unwrap();
        let seen = detail.tabs.iter().filter(|slot| slot.place.width > 0);
        let mut end = 0;
        for slot in seen.clone() {
            assert!(slot.place.x >= end && slot.place.right() < width, "{width} {tab:?}: {:?}", detail.tabs);
            end = slot.place.right() + 1;
        }
        let whole = |slot: &&TabSlot| slot.tab == tab && usize::from(slot.place.width) == slot.title.len();
        assert!(!tab.is_shown(PROCESS) || seen.clone().any(|slot| whole(&slot)), "{width} {tab:?}: {:?}", detail.tabs);
    }
}
