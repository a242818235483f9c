//! Events of the program's own providers.

use super::*;

const PROVIDER: &str = "MyCompany-Orders";

#[test]
fn events_of_the_program_are_shown_as_recorded() {
    let shipped = described(PROVIDER, 7, "Shipped", &[("order", FieldType::Int32), ("\"by\"", FieldType::String)]);
    let mut payload = 42_u32.to_le_bytes().to_vec();
    payload.put_utf16z("Ada");
    let ignored = [kind("Microsoft-Windows-DotNETRuntimeRundown", 150, 0), kind("Microsoft-Windows-DotNETRuntime", 35, 0)];
    let [rundown, triggered] = ignored.map(|ignored| (3, ignored, vec![0; 8]));
    let bytes = stream(&[(1, shipped, payload), (2, described(PROVIDER, 8, "", &[]), vec![]), rundown, triggered]);
    let shown: Vec<_> = chromium(&bytes, "cat", "event").iter().map(|event| (event["name"].clone(), event["args"].clone())).collect();
    assert_eq!(
        shown,
        [
            ("Shipped".into(), serde_json::json!({ "provider": PROVIDER, "order": "42", "\"by\"": "Ada" })),
            ("Event 8".into(), serde_json::json!({ "provider": PROVIDER })),
        ]
    );
}

#[test]
fn very_many_events_are_shown_only_on_request() {
    let mut encoder = Encoder::new(TraceHeader::default());
    let metadata = encoder.metadata(&described(PROVIDER, 7, "Shipped", &[]));
    for timestamp in 0..=MAX_OWN_EVENTS as i64 {
        encoder.event(&NewEvent { metadata, timestamp, ..NewEvent::default() });
    }
    encoder.end();
    let bytes = encoder.take();
    for (all_events, shown, left_out) in [(false, 0, MAX_OWN_EVENTS + 1), (true, MAX_OWN_EVENTS + 1, 0)] {
        let mut overview = Overview::default();
        read(&bytes, &mut overview);
        let options = Options { all_events, ..Options::new(TraceFormat::Perfetto, Part::default()) };
        let mut export = Export::new(options, overview, Box::new(std::io::sink()), Box::new(Cursor::new(Vec::new()))).unwrap();
        read(&bytes, &mut export);
        let finished = export.finish().unwrap();
        let Finished::Part(written) = &finished else { panic!("not a part") };
        assert_eq!((written.others, written.left_out), (shown, left_out));
        assert_eq!(finished.note().is_some(), left_out > 0);
    }
}
