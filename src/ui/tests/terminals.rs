//! Terminals of any size, without color, or with ASCII only.

use ratatui::style::Modifier;

use super::*;

/// Without color, selection and states are still distinguishable, and nothing is colored.
#[test]
fn mono_has_no_color_and_shows_the_selection() {
    for (name, make) in SCENES {
        let buffer = picture(&make(120, 40), &Theme::mono(), 120, 40);
        assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{name}");
    }
    let buffer = picture(&scene("table", 80, 24), &Theme::mono(), 80, 24);
    let reversed = |y: u16| (2..78).all(|x| buffer[(x, y)].modifier.contains(Modifier::REVERSED));
    assert_eq!((0..24).filter(|y| reversed(*y)).collect::<Vec<_>>(), [3]);
}

/// Otherwise, adjacent frames without room for their names look like one.
#[test]
fn narrow_flame_graph_frames_are_separated_without_color() {
    let app = scene("cpu-flame", 40, 24);
    let lines = |theme: &Theme| {
        let shown = text(&picture(&app, theme, 40, 24));
        shown.lines().filter(|line| line.matches('│').count() > 2).count()
    };
    assert_eq!(lines(&Theme::dark()), 0);
    assert!(lines(&Theme::mono()) > 0);
}

#[test]
fn ascii_theme_draws_only_ascii() {
    for (name, make) in SCENES {
        let buffer = picture(&make(120, 40), &Theme::light().ascii(), 120, 40);
        let text = text(&buffer);
        assert!(text.is_ascii(), "{name}: {:?}", text.chars().filter(|c| !c.is_ascii()).collect::<String>());
    }
}

#[test]
fn drawing_works_at_every_size() {
    let sizes = [
        (1, 1),
        (2, 1),
        (1, 2),
        (3, 9),
        (39, 10),
        (40, 9),
        (40, 10),
        (41, 11),
        (59, 17),
        (60, 20),
        (99, 30),
        (160, 12),
        (160, 50),
        (300, 100),
    ];
    for (name, make) in SCENES {
        for (width, height) in sizes {
            let app = make(width, height);
            for theme in [Theme::dark(), Theme::mono().ascii()] {
                let buffer = picture(&app, &theme, width, height);
                assert_eq!((buffer.area.width, buffer.area.height), (width, height), "{name}");
                // The terminal may be smaller than its last reported size.
                picture(&app, &theme, width.div_ceil(2), height.div_ceil(2));
            }
        }
    }
}

#[test]
fn a_terminal_that_became_too_small_shows_how_to_quit() {
    let mut app = scene("recording", 120, 40);
    app.send(crate::app::Msg::Resize(20, 7));
    assert!(text(&picture(&app, &Theme::dark(), 20, 7)).contains("Recording continues."));
    app.press("⌃c");
    assert!(text(&picture(&app, &Theme::dark(), 20, 7)).contains("Ctrl-C again"));
    app.press("⌃c");
    assert!(text(&picture(&app, &Theme::dark(), 20, 7)).contains("Finishing."));
}
