//! Profiles read back from their JSON, with what every trace must keep to.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;

use dlhal::runtime::Device;
use serde_json::Value;

/// A slice of a trace. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) flow: Option<u64>,
    pub(crate) args: Value,
}

/// A trace by its tracks' names.
pub(crate) struct Trace {
    /// Of the device: `stream 1` and so on.
    pub(crate) streams: BTreeMap<String, Vec<Slice>>,
    /// Of the host: the threads.
    pub(crate) threads: BTreeMap<String, Vec<Slice>>,
    pub(crate) metadata: Value,
}

impl Trace {
    /// Stops the profile of `device` and reads it.
    pub(crate) fn of(device: &Device) -> Self {
        device.stop_profile().unwrap();
        Self::read(&device.profile_trace().unwrap())
    }

    pub(crate) fn read(bytes: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(bytes).unwrap();
        let mut processes = BTreeMap::new();
        let mut names = BTreeMap::new();
        let mut tracks: BTreeMap<(u64, u64), Vec<Slice>> = BTreeMap::new();
        for event in json["traceEvents"].as_array().unwrap() {
            let pid = event["pid"].as_u64().unwrap();
            let tid = || event["tid"].as_u64().unwrap();
            let named = || event["args"]["name"].as_str().unwrap().to_owned();
            match (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap()) {
                ("M", "process_name") => assert_eq!(processes.insert(pid, named()), None),
                ("M", "thread_name") => assert_eq!(names.insert((pid, tid()), named()), None),
                ("M", "process_sort_index") => {}
                ("X", _) => tracks.entry((pid, tid())).or_default().push(slice(event)),
                (other, name) => unreachable!("an event `{name}` of phase {other}"),
            }
        }
        let mut trace = Self {
            streams: BTreeMap::new(),
            threads: BTreeMap::new(),
            metadata: json["otherData"].clone(),
        };
        for (track, mut slices) in tracks {
            slices.sort_by_key(|slice| (slice.start, u64::MAX - slice.end));
            assert_nested(&slices);
            let process = &processes[&track.0];
            if process.starts_with("host") {
                // Two threads may have one name.
                trace.threads.entry(names[&track].clone()).or_default().extend(slices);
            } else {
                assert!(process.starts_with("device"), "{process}");
                assert_eq!(trace.streams.insert(names[&track].clone(), slices).map(|_| ()), None);
            }
        }
        trace.assert_flows();
        trace
    }

    /// The commands of all streams, without gaps.
    pub(crate) fn commands(&self) -> Vec<&Slice> {
        self.streams.values().flatten().filter(|slice| slice.category != "idle").collect()
    }

    /// How often a command has this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.commands().iter().filter(|slice| slice.name == name).count()
    }

    /// The host's work with this name.
    pub(crate) fn host(&self, name: &str) -> Vec<&Slice> {
        self.threads.values().flatten().filter(|slice| slice.name == name).collect()
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        self.metadata[key].as_u64().unwrap()
    }

    /// Each command leads back to where it was recorded.
    fn assert_flows(&self) {
        let flows = |slices: Vec<&Slice>| {
            let mut flows: Vec<_> = slices.iter().filter_map(|slice| slice.flow).collect();
            flows.sort_unstable();
            flows
        };
        let recorded = flows(self.threads.values().flatten().collect());
        assert_eq!(flows(self.commands()), recorded);
        assert!(recorded.is_sorted_by(|a, b| a < b), "a flow with two ends");
    }
}

fn slice(event: &Value) -> Slice {
    let nanos = |key: &str| (event[key].as_f64().unwrap() * 1000.0).round() as u64;
    assert!(event["dur"].as_f64().unwrap() >= 0.0, "{event}");
    Slice {
        name: event["name"].as_str().unwrap().to_owned(),
        category: event["cat"].as_str().unwrap().to_owned(),
        start: nanos("ts"),
        end: nanos("ts") + nanos("dur"),
        flow: event["bind_id"].as_u64(),
        args: event["args"].clone(),
    }
}

/// Of slices by their start, each lies in the one around it or after it.
fn assert_nested(slices: &[Slice]) {
    let mut around: Vec<&Slice> = Vec::new();
    for slice in slices {
        while around.last().is_some_and(|outer| outer.end <= slice.start) {
            around.pop();
        }
        if let Some(outer) = around.last() {
            assert!(slice.end <= outer.end, "{slice:?} leaves {outer:?}");
        }
        around.push(slice);
    }
}
