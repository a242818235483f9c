//! The flame graph.

use std::sync::Arc;

use super::sampling::sampled;
use crate::analysis::COUNTED;
use crate::app::Msg;
use crate::app::action::Context;
use crate::app::test_app::{TestApp, recording};
use crate::model::{Phase, Recording};
use crate::ui::tests::analysis::scripted;

fn selected(app: &TestApp) -> Option<String> {
    app.state.flame().unwrap().selected_frame().map(|frame| frame.name.clone())
}

#[test]
fn flame_graph_is_navigated_by_arrows_enter_and_backspace() {
    let mut app = sampled("7ff");
    assert_eq!((app.state.context(), selected(&app)), (Context::Flame, None));
    for (keys, name) in [
        ("↓", "System.Threading.Thread.StartCallback"),
        ("↓", "Shop.Api.OrdersController.Create"),
        ("↓", "Shop.Pricing.PriceEngine.PriceBasket"),
        ("→", "Shop.Stock.Ledger.Reserve"),
        ("→", "Shop.Stock.Ledger.Reserve"),
        ("←", "Shop.Pricing.PriceEngine.PriceBasket"),
        ("G", "Shop.Pricing.Discounts.Apply"),
        ("G", "Shop.Pricing.Discounts.Apply"),
        ("↑", "Shop.Pricing.PriceEngine.PriceBasket"),
    ] {
        app.press(keys);
        assert_eq!(selected(&app).as_deref(), Some(name), "{keys}");
    }
    let zoom = |app: &TestApp| {
        let graph = app.state.flame().unwrap();
        let depth = app.state.views.sampling.flame.zoom.len();
        let place = graph.boxes.iter().find(|place| usize::from(place.depth) == depth).copied().unwrap();
        (graph.counts.profile().frame_of(place.node).map(|frame| frame.name.clone()), place.x, place.width)
    };
    app.press("⏎");
    assert_eq!(zoom(&app), (Some("Shop.Pricing.PriceEngine.PriceBasket".to_owned()), 0, 116));
    // There is no adjacent frame, and another Enter has no effect.
    app.press("→⏎");
    assert_eq!(selected(&app).as_deref(), Some("Shop.Pricing.PriceEngine.PriceBasket"));
    app.press("↓⏎");
    assert_eq!(zoom(&app).0.as_deref(), Some("Shop.Pricing.Discounts.Apply"));
    app.press("⌫");
    assert_eq!(zoom(&app).0.as_deref(), Some("Shop.Pricing.PriceEngine.PriceBasket"));
    app.press("⎋");
    assert_eq!(zoom(&app).0, None);
    assert_eq!(app.state.context(), Context::Flame);
    // An ancestor can also be reached through its frame.
    app.press("g↓↓↓⏎g↓⏎");
    assert_eq!(zoom(&app).0.as_deref(), Some("System.Threading.Thread.StartCallback"));
    app.press("⌫⎋");
    assert_eq!(app.state.context(), Context::List);
}

/// The search goes through all nodes: it is repeated only if it can have another result.
#[test]
fn flame_graph_is_searched_when_search_or_samples_change() {
    let mut app = sampled("7wff");
    let share = |app: &TestApp| app.state.flame_matches().map(|matches| (matches.share * 1000.0).round());
    assert_eq!(share(&app), None);
    app.press("/price⏎");
    let found = share(&app);
    assert!(found > Some(0.0) && found < Some(1000.0), "{found:?}");
    let counted = COUNTED.get();
    (0..9).for_each(|_| app.send(Msg::Tick));
    assert_eq!((share(&app), COUNTED.get()), (found, counted));
    // Only running threads.
    app.press("w");
    assert_ne!(share(&app), found);
    app.press("w/⌫⌫⌫⌫⌫thread⏎");
    assert_ne!(share(&app), found);
    let found_threads = share(&app);
    // Other samples, and other threads.
    let mut analysis = (*scripted()).clone();
    analysis.profile.rename(|name| name.replace("Thread", "Fiber"));
    let analysis = Some(Arc::new(analysis));
    app.report(Recording { analysis, ..recording(1, 43, Phase::Recording) });
    assert_ne!(share(&app), found_threads);
    app.press("/⌫⌫⌫⌫⌫⌫price⏎");
    assert_eq!(share(&app), found);
    app.press("s↓↓⏎");
    assert!(app.state.is_flame() && share(&app) != found, "{:?}", share(&app));
    app.press("f");
    assert_eq!(share(&app), None, "no flame graph is shown");
}

#[test]
fn flame_graph_frames_do_not_overlap_and_nest_in_callers() {
    for width in [40, 60, 81, 120, 300] {
        let mut app = sampled("7wff");
        app.send(Msg::Resize(width, 40));
        let graph = app.state.flame().unwrap();
        assert!(graph.boxes.len() > 4, "{width}");
        for (index, place) in graph.boxes.iter().enumerate() {
            let below = |other: &&crate::app::FlameBox| other.depth == place.depth && other.x >= place.x;
            assert!(graph.boxes[index + 1..].iter().filter(below).all(|other| other.x >= place.x + place.width), "{width}");
            if index > 0 {
                let parent = graph.counts.profile().parent(place.node);
                let above = graph.boxes.iter().find(|other| other.node == parent).unwrap();
                assert!(above.depth + 1 == place.depth && above.x <= place.x && place.x + place.width <= above.x + above.width);
            }
        }
    }
}

/// Names may contain any characters, even double-width ones; no text exceeds its frame.
#[test]
fn flame_graph_frames_render_names_of_any_width() {
    use crate::ui::{Theme, view};
    use ratatui::{Terminal, backend::TestBackend};
    for width in 40..70 {
        let mut app = sampled("7wff");
        app.send(Msg::Resize(width, 24));
        let mut analysis = (*scripted()).clone();
        analysis.profile.rename(|name| name.replace(char::is_alphabetic, "語").replace("語語", "語\u{1b}\u{300}"));
        app.report(Recording { analysis: Some(analysis.into()), ..recording(1, 43, Phase::Recording) });
        let mut terminal = Terminal::new(TestBackend::new(width, 24)).unwrap();
        for theme in [Theme::dark(), Theme::mono().ascii()] {
            terminal.draw(|frame| _ = view(&app.state, &theme, frame)).unwrap();
            let text: String = terminal.backend().buffer().content().iter().map(|cell| cell.symbol()).collect();
            assert!(!text.contains('\u{1b}'), "{width}");
        }
    }
}
