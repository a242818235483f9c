use crate::app::action::Context;
use crate::app::dialog::{Field, Form, Overlay};
use crate::app::world::{World, recording};
use crate::app::{Effect, JobResult, Msg};
use crate::model::{Phase, Recording, TraceFormat};
use crate::ui::tests::scenes::opened;

fn form(world: &World) -> &Form {
    let Some(Overlay::Form(form)) = &world.state.overlay else { panic!("{:?}", world.state.overlay) };
    form
}

/// The source, the destination and the format that were last wanted.
fn wanted(world: &mut World) -> (String, String, TraceFormat) {
    let effects = world.take_effects();
    let Some(Effect::Export { source, destination, format, .. }) = effects.last() else { panic!("{effects:?}") };
    (source.to_string_lossy().into_owned(), destination.to_string_lossy().into_owned(), *format)
}

#[test]
fn a_recording_is_exported_while_it_goes_on() {
    let mut world = World::populated(120, 40);
    world.press("E");
    assert!(world.state.overlay.is_none() && world.said_last().contains("No recording to export"), "{:?}", world.said());
    world.press("⏎t");
    world.wait(1000);
    // Not a byte has come.
    world.press("E");
    assert!(world.state.overlay.is_none());
    let live = recording(1, 42, Phase::Recording);
    let (file, key) = (live.file.clone(), live.key);
    world.send(Msg::Recording(Box::new(live)));
    world.press("E");
    assert_eq!((world.state.context(), form(&world).focus), (Context::Form, Field::Question(0)));
    assert!(form(&world).effects()[0].contains("recorded so far"), "{:?}", form(&world).effects());
    world.press("⏎");
    let ticket = world.last_ticket().unwrap();
    let (source, destination, format) = wanted(&mut world);
    assert_eq!((source, format), (format!("{}.partial", file.display()), TraceFormat::Perfetto));
    let stem = file.to_string_lossy().strip_suffix(".nettrace").unwrap().to_owned();
    assert!(destination.starts_with(&format!("{stem}_")) && destination.ends_with(".perfetto-trace"), "{destination}");
    // It can be followed among the operations, and the process is not busy with it.
    world.send(Msg::JobProgress { ticket, percent: 45 });
    let answers = |world: &World| world.state.activity().iter().map(|activity| activity.answer()).collect::<Vec<_>>();
    assert!(answers(&world).contains(&"under way: 45 %".to_owned()), "{:?}", answers(&world));
    assert!(world.state.jobs.running(key).is_none() && world.state.jobs.active() == 0);
    let done = JobResult { files: vec![destination.clone().into()], bytes: Some(1_000_000), note: None };
    world.send(Msg::JobDone { ticket, result: Ok(done) });
    assert!(world.said_last().contains("export done: ") && world.said_last().contains(&destination), "{:?}", world.said());
    world.send(Msg::JobProgress { ticket, percent: 50 });
    assert!(answers(&world).iter().any(|answer| answer.starts_with("done, ")), "what is over stays over");
}

#[test]
fn the_path_goes_with_the_format_until_another_is_typed() {
    let mut world = opened(120, 40);
    let source = world.state.open_file().unwrap().facts.path.to_string_lossy().into_owned();
    let stem = source.strip_suffix(".nettrace.partial").unwrap_or(source.strip_suffix(".nettrace").unwrap_or(&source)).to_owned();
    for (keys, extension, format) in [("E⏎", "perfetto-trace", TraceFormat::Perfetto), ("E→→→→⏎", "pb", TraceFormat::Pprof)] {
        world.press(keys);
        assert_eq!(wanted(&mut world), (source.clone(), format!("{stem}.{extension}"), format));
    }
    world.press("E⇥⌃u/tmp/mine⇤←⏎");
    assert_eq!(wanted(&mut world), (source.clone(), "/tmp/mine".to_owned(), TraceFormat::Csv));
    world.press("E⇥⌃u⏎");
    assert!(form(&world).complaint.as_ref().unwrap().contains("file's name"));
    world.press("⎋");
    // The part that is looked at.
    world.press("[E");
    assert!(form(&world).effects()[0].contains("selected range"), "{:?}", form(&world).effects());
    world.press("⏎");
    let effects = world.take_effects();
    assert!(matches!(effects.last(), Some(Effect::Export { span: Some((i64::MIN, 49_000_000_000)), .. })), "{effects:?}");
}

#[test]
fn what_goes_into_the_kernel_or_left_no_file_is_not_exported() {
    let mut world = World::populated(120, 40);
    world.press("⏎t");
    let outcome = crate::model::Outcome { stopped_by: crate::model::StoppedBy::Interrupt, complete: false, file: None, trouble: None };
    let over = Recording { bytes: 0, ..recording(1, 1, Phase::Done(outcome)) };
    world.send(Msg::Recording(Box::new(over)));
    world.press("E");
    assert!(world.state.overlay.is_none() && world.said_last().contains("No recording to export"), "{:?}", world.said());
}
