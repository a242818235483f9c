//! Conditions that are events.

use std::cell::RefCell;

use super::*;
use crate::model::Conditions;
use crate::session::ConditionWait;
use crate::session::condition::EventWait;

/// Waits for an event until the wait ends or this time is over. Returns whether it is still awaited, and the hint on its provider.
async fn occurrence(bench: &Bench, event: &str, limit: Duration) -> (bool, String) {
    let hint = RefCell::default();
    let wait = EventWait::start(bench.client.clone(), &Trigger::parse(event).unwrap()).await.unwrap();
    let occurrence = timeout(limit, wait.occurrence(Duration::from_millis(300), |text| *hint.borrow_mut() = text.to_owned())).await;
    (occurrence.is_err(), hint.into_inner())
}

#[tokio::test]
async fn event_must_occur_as_often_as_specified() {
    let bench = bench(spec());
    for (text, words) in [("exception", " occurred: "), ("exception 3 times in 60s", " is true; the last event: ")] {
        let conditions = Conditions::parse(text).unwrap();
        let wait = ConditionWait::start(bench.client.clone(), &conditions).await.unwrap();
        let met = timeout(STEP_TIMEOUT, wait.met(None, &|_| ())).await.unwrap().unwrap();
        assert!(met.contains(words), "{met}");
    }
}

#[tokio::test]
async fn provider_without_events_is_reported_while_its_event_is_awaited() {
    let bench = bench(spec());
    let limit = Duration::from_secs(1);
    let (is_awaited, hint) = occurrence(&bench, "Demo-Wob/1", limit).await;
    assert!(is_awaited && hint.starts_with("no event of Demo-Wob in the first "), "{hint}");
    assert_eq!(occurrence(&bench, "Demo-Web/65000", limit).await, (true, String::new()), "others of its events have occurred");
}
