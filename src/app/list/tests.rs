use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::analysis::RuntimeStats;
use crate::app::layout::tests::INPUT;
use crate::app::layout::{Layout, LayoutInput};
use crate::app::sort::Direction;
use crate::app::test_app::{process, sample_processes};
use crate::model::{Contact, Usage};

fn names(list: &ProcessList) -> Vec<&str> {
    list.order.iter().map(|&index| list.rows[index].process.name.as_str()).collect()
}

fn list(filter: &str) -> ProcessList {
    let mut list = ProcessList::new(filter, Sort::default());
    list.replace(sample_processes(), Duration::ZERO);
    list
}

#[test]
fn list_sorts_by_every_column_in_both_directions() {
    for column in Column::ALL {
        let mut list = list("");
        let status = |key: ProcessKey| {
            let figure = Some(f64::from(key.pid));
            let stats = RuntimeStats {
                heap: figure,
                allocation_rate: figure,
                gc_time_percent: figure,
                exceptions: figure,
                queue_length: figure,
                ..RuntimeStats::default()
            };
            (key.pid > 1000).then_some(WatchStatus { stats, ..WatchStatus::default() })
        };
        list.mark_watches(status, true);
        // The first call selects the column, the next one reverses the direction.
        if list.sort().column != column {
            list.sort_by(column);
        }
        assert_eq!(list.sort().direction, column.first_direction());
        // Unknown values come last in either direction.
        let ordered = |list: &ProcessList| {
            let rows: Vec<_> = list.order.iter().map(|&index| &list.rows[index]).collect();
            let (known, unknown) = rows.split_at(rows.partition_point(|row| !column.is_unknown(row)));
            let pairs: Vec<_> = known.windows(2).map(|pair| column.compare(pair[0], pair[1])).collect();
            let wrong = if list.sort().direction == Direction::Descending { Ordering::Less } else { Ordering::Greater };
            !pairs.contains(&wrong) && !known.is_empty() && unknown.iter().all(|row| column.is_unknown(row))
        };
        assert!(ordered(&list), "{column:?}");
        list.sort_by(column);
        assert_ne!(list.sort().direction, column.first_direction());
        assert!(ordered(&list), "{column:?}");
    }
}

#[test]
fn unknown_values_are_last_in_either_direction() {
    let mut processes = sample_processes();
    processes[0] = Process { runtime: None, contact: Contact::Unknown, usage: Usage::default(), ..processes[0].clone() };
    for column in [Column::Runtime, Column::Cpu, Column::Memory, Column::Threads] {
        let mut list = ProcessList::new("", Sort { column, direction: Direction::Descending });
        list.replace(processes.clone(), Duration::ZERO);
        assert_eq!(names(&list).last(), Some(&"OrderService"), "{column:?}");
        list.reverse();
        assert_eq!(names(&list).last(), Some(&"OrderService"), "{column:?}");
        // A version that is not reported is an old one.
        assert!(column != Column::Runtime || names(&list)[0] == "LegacyBilling");
    }
}

#[test]
fn the_first_row_is_selected_until_a_key_or_click() {
    let mut list = list("");
    let busiest = list.selected().unwrap();
    let with_idle = |key| {
        sample_processes().into_iter().map(move |mut process| {
            if process.key == key {
                process.usage.cpu_percent = Some(0.0);
            }
            process
        })
    };
    list.replace(with_idle(busiest).collect(), Duration::ZERO);
    assert_eq!(list.cursor(), Some(0));
    let next = list.selected().unwrap();
    assert_ne!(next, busiest);
    list.pin();
    list.replace(with_idle(next).collect(), Duration::ZERO);
    assert_eq!(list.selected(), Some(next));
    assert_ne!(list.cursor(), Some(0));
}

#[test]
fn filters_match_words_columns_and_negations() {
    for (filter, found) in [
        ("web", vec!["WebGateway"]),
        ("rdsvc", vec!["OrderService"]),
        ("WEB", vec!["WebGateway"]),
        ("name:web", vec!["WebGateway"]),
        ("file:web", vec![]),
        ("pid:4242", vec!["OrderService"]),
        ("state:denied", vec!["NodeAgent"]),
        ("nowhere:web", vec![]),
        ("4242", vec!["OrderService"]),
        ("root", vec!["NodeAgent"]),
        ("denied", vec!["NodeAgent"]),
        ("3f9a", vec!["WebGateway"]),
        // A version that is not reported is shown as an old one.
        ("runtime:3.x", vec!["LegacyBilling"]),
        ("9.0 !app", vec![]),
        ("pwsh.dll", vec!["pwsh"]),
        ("!pwsh !Service !Web !Inventory !Legacy !Report !Search", vec!["NodeAgent"]),
        ("!", vec!["pwsh", "OrderService", "WebGateway", "NodeAgent", "LegacyBilling", "InventoryApi", "ReportWorker", "Search.Indexer"]),
        ("no such thing", vec![]),
    ] {
        let list = list(filter);
        let (mut names, mut found) = (names(&list), found);
        names.sort_unstable();
        found.sort_unstable();
        assert_eq!(names, found, "{filter}");
    }
}

#[test]
fn the_selection_follows_the_process() {
    let mut list = list("");
    list.pin();
    assert_eq!(names(&list)[0], "OrderService");
    list.select_place(2);
    let key = list.selected().unwrap();
    list.sort_by(Column::Name);
    assert_eq!(list.selected(), Some(key));
    list.reverse();
    assert_eq!(list.selected(), Some(key));
    // The selection keeps its position when its process is filtered out or exits.
    list.set_filter("Order");
    assert_eq!(names(&list), ["OrderService"]);
    assert_eq!(list.selected_row().unwrap().process.name, "OrderService");
    list.set_filter("");
    list.select_place(usize::MAX);
    assert_eq!(list.cursor(), Some(7));
    list.replace(sample_processes().into_iter().take(2).collect(), Duration::from_secs(1));
    assert_eq!(list.len(), 8, "those that ended stay for a while");
    assert!(list.expire(Duration::from_secs(5)));
    assert_eq!((list.len(), list.cursor()), (2, Some(1)));
}

#[test]
fn new_rows_are_marked_and_ended_rows_expire() {
    let mut list = ProcessList::new("", Sort::default());
    assert!(!list.is_loaded());
    (0..6).for_each(|_| _ = list.replace(vec![process(1, "a")], Duration::ZERO));
    assert!(list.rows().iter().all(|row| row.new_until.is_none()), "not everything is new at first");
    assert!(list.replace(vec![process(1, "a"), process(2, "b")], Duration::from_secs(1)));
    assert_eq!(list.find(process(2, "b").key).unwrap().new_until, Some(Duration::from_secs(1) + NEW_DURATION));
    assert_eq!(list.deadline(), Some(Duration::from_secs(1) + NEW_DURATION));
    (0..5).for_each(|_| _ = list.replace(vec![process(1, "a"), process(2, "b")], Duration::from_secs(2)));
    assert!(!list.replace(vec![process(1, "a"), process(2, "b")], Duration::from_secs(2)), "nothing changed");
    assert!(list.expire(Duration::from_secs(3)));
    assert!(list.replace(vec![process(1, "a")], Duration::from_secs(4)));
    assert!(!list.expire(Duration::from_secs(6)));
    // The same PID with another start time is another process.
    let mut reused = process(2, "b");
    reused.key.started += 1;
    list.replace(vec![process(1, "a"), reused], Duration::from_secs(6));
    assert_eq!(list.len(), 3);
    assert!(list.expire(Duration::from_secs(7)));
    assert_eq!(list.len(), 2);
}

proptest! {
    #[test]
    fn selection_is_always_a_visible_row(steps in prop::collection::vec((0_u8..8, 0_usize..12), 1..60)) {
        let all = sample_processes();
        let mut list = ProcessList::new("", Sort::default());
        for (now, (step, number)) in steps.into_iter().enumerate() {
            match step {
                0 => { list.replace(all.iter().skip(number).cloned().collect(), Duration::from_secs(now as u64)); }
                1 => { list.expire(Duration::from_secs(now as u64)); }
                2 => list.set_filter(["", "e", "e !w", "x", "app", "9", "!a", "order", "!", "ü", "zz", " "][number]),
                3 => list.sort_by(Column::ALL[number % 11]),
                4 => list.move_by(number as isize - 6),
                5 => list.select_place(number),
                6 => list.scroll_to_selection(number),
                _ => list.mark_recordings(|key| key.pid as usize % 12 == number),
            }
            prop_assert_eq!(list.selected().is_none(), list.is_empty());
            if let Some(place) = list.cursor() {
                prop_assert!(place < list.len());
                prop_assert_eq!(list.selected(), Some(list.rows[list.order[place]].process.key));
            }
            if step == 6 && number > 0 && !list.is_empty() {
                prop_assert_eq!(list.view_cursor().is_some_and(|cursor| cursor.window(list.len(), number).contains(&cursor.at)), true);
            }
        }
    }
}

#[test]
fn column_and_sort_options_are_parsed() {
    assert_eq!(Columns::parse(&Columns::default().to_string()), Ok(Columns::default()));
    let columns = Columns::parse("name, CPU,gc").unwrap();
    assert_eq!(columns.listed(), [Column::Name, Column::Cpu, Column::GcTime]);
    assert_eq!(Sort::parse("rss"), Ok(Sort { column: Column::Memory, direction: Direction::Descending }));
    assert_eq!(Sort::parse("name"), Ok(Sort { column: Column::Name, direction: Direction::Ascending }));
    assert_eq!(Sort::parse("cpu:asc"), Ok(Sort { column: Column::Cpu, direction: Direction::Ascending }));
    for (text, wrong) in [
        ("pid,nme", "unknown column 'nme': expected one of pid,name,runtime,"),
        ("", "unknown column ''"),
        ("pid", "column 'name' is missing"),
        ("name,name", "column 'name' is given twice"),
    ] {
        assert!(Columns::parse(text).unwrap_err().starts_with(wrong), "{text}");
    }
    assert!(Sort::parse("cpu:up").unwrap_err().starts_with("unknown direction 'up'"));
}

#[test]
fn threads_column_has_a_short_title_only_where_the_whole_one_does_not_fit() {
    let title = |width, columns: &str| {
        let input = LayoutInput { columns: Columns::parse(columns).unwrap(), ..INPUT };
        let slots = Layout::new(width, 30, input).list.unwrap().columns;
        let slot = slots.iter().find(|slot| slot.column == Column::Threads).unwrap();
        (slot.column.title_within(slot.width), slot.width)
    };
    let all = Columns::ALL.to_string();
    assert_eq!(
        [80, 82, 83, 120, 200].map(|width| title(width, &all)),
        [("THR", 4), ("THR", 4), ("THREADS", 7), ("THREADS", 7), ("THREADS", 7),]
    );
    // At the least width of the table.
    assert_eq!(title(40, "name,threads"), ("THREADS", 7));
}

#[test]
fn chosen_columns_keep_their_order_and_fit_the_width() {
    let shown = |width, columns: &str| -> Vec<_> {
        let input = LayoutInput { columns: Columns::parse(columns).unwrap(), ..INPUT };
        Layout::new(width, 30, input).list.unwrap().columns.iter().map(|slot| slot.column).collect()
    };
    use Column::{Cpu, GcTime, Heap, Memory, Name, User};
    // Columns that need a watched process are shown even without one if chosen explicitly.
    assert_eq!(shown(80, "rss,name,gc,user,heap"), [Memory, Name, GcTime, User, Heap]);
    assert_eq!(shown(40, "rss,name,gc,user,heap"), [Name, GcTime, Heap]);
    assert_eq!(shown(80, "cpu,name"), [Cpu, Name]);
    assert!(!shown(200, &Columns::ALL.to_string()).contains(&Heap));
}
