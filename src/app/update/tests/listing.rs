//! Lists that are read only while their tab is open.

use crate::app::test_app::{TestApp, sample_processes};
use crate::app::{Effect, Msg, Tab};

/// Threads are listed as often as processes, and only while they are visible.
#[test]
fn threads_are_listed_only_while_their_tab_is_open() {
    let mut app = TestApp::populated(120, 40);
    let requests = |app: &mut TestApp| {
        let of = |effect| if let Effect::ListThreads { key, ticket } = effect { Some((key, ticket)) } else { None };
        app.take_effects().into_iter().filter_map(of).collect::<Vec<_>>()
    };
    app.send(Msg::Processes(sample_processes()));
    assert_eq!(requests(&mut app), []);
    app.press("⏎6");
    let [(key, ticket)] = requests(&mut app)[..] else { panic!() };
    assert_eq!(Some(key), app.state.list.selected());
    app.send(Msg::Processes(sample_processes()));
    assert_eq!(requests(&mut app), [], "one question at a time");
    app.send(Msg::Threads { ticket, threads: Vec::new() });
    assert_eq!(requests(&mut app).len(), 1);
    app.send(Msg::Threads { ticket, threads: Vec::new() });
    app.press("␣");
    app.send(Msg::Processes(sample_processes()));
    assert_eq!(requests(&mut app), [], "the display is frozen");
}

#[test]
fn assemblies_are_listed_only_while_their_tab_is_open() {
    let mut app = TestApp::populated(120, 40);
    let requests = |app: &mut TestApp| {
        let of = |effect| if let Effect::ListAssemblies { ticket, .. } = effect { Some(ticket) } else { None };
        app.take_effects().into_iter().filter_map(of).collect::<Vec<_>>()
    };
    app.press("⏎6");
    assert_eq!(requests(&mut app), []);
    app.press("9⇥⇥⇥⇥");
    let [ticket] = requests(&mut app)[..] else { panic!() };
    let empty = |app: &TestApp| app.state.view_of(Tab::Assemblies).unwrap().empty.0;
    assert_eq!(empty(&app), "Listing assemblies …");
    app.send(Msg::Assemblies { ticket, paths: vec!["/srv/Shop.dll".into()] });
    let copied = |app: &TestApp| app.state.view_of(Tab::Assemblies).unwrap().copy;
    assert_eq!(copied(&app), Some(("path", "/srv/Shop.dll".to_owned())));
    app.send(Msg::Processes(sample_processes()));
    let [ticket] = requests(&mut app)[..] else { panic!() };
    app.send(Msg::Assemblies { ticket, paths: Vec::new() });
    assert!(empty(&app).starts_with("No mapped assembly found"));
}
