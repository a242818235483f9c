//! Requests and other activities, each on a lane of its operation.

use crate::analysis::{ActivityPairs, ActivityStep, Outcome, RunningActivity};
use crate::clr::EventKind;
use crate::nettrace::Event;

use super::open_slices::flow_of;
use super::output::Output;
use super::writer::{ArgumentValue, Track, TrackEvent};

/// Maximum number of lanes of an operation. Further concurrent activities are not shown.
const MAX_LANES: usize = 256;

/// The running activities.
#[derive(Debug, Default)]
pub(super) struct Activities {
    pairs: ActivityPairs,
    /// By operation number.
    operations: Vec<Lanes>,
    /// By place of the activity; `None` if there is no activity, or no lane was free.
    places: Vec<Option<ActivityLane>>,
}

#[derive(Debug)]
struct Lanes {
    title: String,
    in_use: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
struct ActivityLane {
    operation: usize,
    lane: usize,
    id: [u8; 16],
    caused_by: [u8; 16],
}

impl Activities {
    pub(super) fn feed(&mut self, kind: EventKind, event: &Event<'_>, at: i64, output: &mut Output<'_>) {
        match self.pairs.feed(kind, event, at) {
            Some(ActivityStep::Began { operation, place: Some(place) }) => self.begin(event, operation, place),
            Some(ActivityStep::Ended { place, outcome, .. }) => {
                if let Some(ended) = self.release_lane(place) {
                    let arguments = match outcome {
                        Outcome::Status(status) => Some(("status", ArgumentValue::Count(status.into()))),
                        Outcome::Failed => Some(("failed", ArgumentValue::Flag(true))),
                        Outcome::Unknown => None,
                    };
                    self.show(ended, self.pairs.activity(place), at, arguments, output);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event<'_>, operation: usize, place: usize) {
        // The previous activity at this place was abandoned.
        self.release_lane(place);
        for new in self.operations.len()..=operation {
            let operation = self.pairs.operation(new);
            self.operations.push(Lanes { title: format!("{} {}", operation.provider, operation.name), in_use: Vec::new() });
        }
        let lanes = &mut self.operations[operation].in_use;
        let lane = lanes.iter().position(|in_use| !in_use).unwrap_or(lanes.len());
        if lane >= MAX_LANES {
            return;
        }
        lanes.resize(lanes.len().max(lane + 1), true);
        lanes[lane] = true;
        self.places.resize(self.places.len().max(place + 1), None);
        self.places[place] = Some(ActivityLane { operation, lane, id: event.activity_id(), caused_by: event.related_activity_id() });
    }

    fn release_lane(&mut self, place: usize) -> Option<ActivityLane> {
        let left = self.places.get_mut(place)?.take()?;
        self.operations[left.operation].in_use[left.lane] = false;
        Some(left)
    }

    /// Ends all running activities.
    pub(super) fn finish(&self, end: i64, output: &mut Output<'_>) {
        let mut running: Vec<_> = self.pairs.running().collect();
        running.sort_unstable_by_key(|(place, _)| *place);
        for (place, activity) in running {
            if let Some(Some(unfinished)) = self.places.get(place) {
                self.show(*unfinished, activity, end, Some(("unfinished", ArgumentValue::Flag(true))), output);
            }
        }
    }

    fn show(
        &self,
        place: ActivityLane,
        activity: &RunningActivity,
        end: i64,
        argument: Option<(&'static str, ArgumentValue<'_>)>,
        output: &mut Output<'_>,
    ) {
        let title = &self.operations[place.operation].title;
        let name = if activity.subject.is_empty() { title } else { &activity.subject };
        let id = format!("{:032x}", u128::from_be_bytes(place.id));
        let arguments = [("activity", ArgumentValue::Text(&id)), argument.unwrap_or(("", ArgumentValue::Flag(false)))];
        let arguments = &arguments[..=usize::from(argument.is_some())];
        output.event(TrackEvent {
            track: Track::Operation { name: title, lane: place.lane as u32 },
            flows: [flow_of(place.id), flow_of(place.caused_by)],
            ..TrackEvent::slice(activity.thread, "activity", name, activity.since, end, arguments)
        });
    }
}
