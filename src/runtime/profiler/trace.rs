//! A profile as a trace: JSON in the Trace Event Format, which Perfetto and Chrome show.
//!
//! The device is one process of the trace and its streams are the threads of it; the host's threads
//! are those of another. Times are microseconds of the host's clock. The format wants slices of one
//! thread to lie in each other or apart.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::gaps::{self, Ran, Summary};
use super::host::{self, HostSpan};
use super::kept::{Command, DeviceTime, Event, Kept, What};
use super::label::HostWork;
use crate::runtime::device::Device;

/// The trace's process of the host, beyond those of any device. Number 0 means something else to
/// readers.
const HOST: u32 = 1000;
/// Gaps from this length on are slices of their own, in nanoseconds.
const GAP_SHOWN: u64 = 1000;

/// One event of the format.
#[derive(Serialize)]
struct Slice<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    /// Ties a command to where it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    bind_id: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    flow_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    flow_in: bool,
    args: Value,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Writes the trace of a profile of `device`.
pub(super) fn write(device: &Device, kept: &Kept, target: &mut dyn Write) -> io::Result<()> {
    let mut writer = Events { target, any: false };
    writer.target.write_all(b"{\"traceEvents\":[\n")?;
    let pid = device_process(device);
    let name = format!("device {}: {}", device.id(), device.properties().name);
    writer.name_process(pid, &name, 0)?;
    writer.name_process(HOST, &format!("host: process {}", std::process::id()), 1)?;
    for thread in threads(kept) {
        writer.name_thread(HOST, thread, &host::thread_name(thread))?;
    }
    let mut summaries = Vec::new();
    for track in kept.commands().map(|command| command.track).collect::<BTreeSet<_>>() {
        writer.name_thread(pid, track + 1, &format!("stream {}", track + 1))?;
        let ran = gaps::of_stream(kept, track);
        ran.iter().try_for_each(|ran| writer.command(pid, track + 1, ran))?;
        summaries.push(Summary::new(track + 1, &ran));
    }
    for event in &kept.events {
        match event {
            Event::Command(command) => writer.recording(command)?,
            Event::Host(span) => writer.host(span)?,
        }
    }
    write!(writer.target, "\n],\n\"otherData\":")?;
    serde_json::to_writer(&mut writer.target, &metadata(device, kept, &summaries))?;
    writer.target.write_all(b"}\n")
}

fn device_process(device: &Device) -> u32 {
    device.id().unsigned_abs() + 1
}

fn threads(kept: &Kept) -> BTreeSet<u32> {
    let thread = |event: &Event| match event {
        Event::Command(command) => command.thread,
        Event::Host(span) => span.thread,
    };
    kept.events.iter().map(thread).collect()
}

fn metadata(device: &Device, kept: &Kept, streams: &[Summary]) -> Value {
    let properties = device.properties();
    let count = |time| kept.commands().filter(|command| command.time == time).count();
    json!({
        "library": concat!("dlhal ", env!("CARGO_PKG_VERSION")),
        "device": properties.name,
        "driver": format!("{} {}", properties.driver_name, properties.driver_info),
        "device_timestamps": !properties.fallbacks.no_timestamps,
        "clock_uncertainty_ns": kept.clocks.iter().filter_map(|clock| clock.uncertainty()).max(),
        "duration_ns": kept.ended - kept.started,
        "events": kept.events.len(),
        "events_dropped": kept.dropped,
        "commands_not_timed": count(DeviceTime::Unmeasured),
        "commands_refused": count(DeviceTime::Refused),
        "commands_unfinished": count(DeviceTime::Unfinished),
        "streams": streams,
    })
}

/// Writes events one by one.
struct Events<'a> {
    target: &'a mut dyn Write,
    any: bool,
}

impl Events<'_> {
    fn put(&mut self, event: &impl Serialize) -> io::Result<()> {
        if std::mem::replace(&mut self.any, true) {
            self.target.write_all(b",\n")?;
        }
        Ok(serde_json::to_writer(&mut *self.target, event)?)
    }

    fn name_process(&mut self, pid: u32, name: &str, place: u32) -> io::Result<()> {
        self.put(&json!({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}))?;
        let place = json!({"sort_index": place});
        self.put(&json!({"name": "process_sort_index", "ph": "M", "pid": pid, "args": place}))
    }

    fn name_thread(&mut self, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        let name = json!({"name": name});
        self.put(&json!({"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": name}))
    }

    /// A command on its stream, with the gap before it.
    fn command(&mut self, pid: u32, tid: u32, ran: &Ran<'_>) -> io::Result<()> {
        if let Some(gap) = ran.gap.filter(|gap| gap.length() >= GAP_SHOWN) {
            let args = json!({
                "until_recorded_ns": gap.unrecorded,
                "until_submitted_ns": gap.unsubmitted,
                "after_submission_ns": gap.submitted,
            });
            self.put(&Slice {
                cat: "idle",
                ..slice(gap.name(), pid, tid, gap.start, gap.start + gap.length(), args)
            })?;
        }
        let command = ran.command;
        let mut args = json!({
            "recorded_us": micros(command.recorded_until),
            "submitted_us": micros(command.submitted),
        });
        if let What::Copy(_, bytes) = command.what {
            args["bytes"] = bytes.into();
        }
        self.put(&Slice {
            cat: if command.is_kernel() { "kernel" } else { "copy" },
            bind_id: Some(command.number),
            flow_in: true,
            ..slice(command.name(), pid, tid, ran.start, ran.end, args)
        })
    }

    /// Where the host recorded a command.
    fn recording(&mut self, command: &Command) -> io::Result<()> {
        let mut args = json!({"stream": command.track + 1});
        let outcome = match command.time {
            DeviceTime::Ticks(_) => None,
            DeviceTime::Unmeasured => Some("no timestamps"),
            DeviceTime::Refused => Some("refused by the device"),
            DeviceTime::Unfinished => Some("not finished when the device was lost"),
        };
        if let Some(outcome) = outcome {
            args["on_device"] = outcome.into();
        }
        let (start, end) = (command.recorded, command.recorded_until);
        let name = format!("record {}", command.name());
        let timed = outcome.is_none();
        self.put(&Slice {
            bind_id: timed.then_some(command.number),
            flow_out: timed,
            ..slice(&name, HOST, command.thread, start, end, args)
        })
    }

    fn host(&mut self, span: &HostSpan) -> io::Result<()> {
        let args = match span.work {
            HostWork::Copy(_, bytes) | HostWork::Mapped(_, bytes) | HostWork::Staging(_, bytes) => {
                json!({"bytes": bytes})
            }
            HostWork::Submit(commands) => json!({"commands": commands}),
            HostWork::Wait => json!({}),
        };
        self.put(&slice(span.work.name(), HOST, span.thread, span.start, span.end, args))
    }
}

/// A slice of the host's, from and to nanoseconds.
fn slice(name: &str, pid: u32, tid: u32, start: u64, end: u64, args: Value) -> Slice<'_> {
    Slice {
        name,
        cat: "host",
        ph: "X",
        pid,
        tid,
        ts: micros(start),
        dur: micros(end - start),
        bind_id: None,
        flow_out: false,
        flow_in: false,
        args,
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

impl Command {
    pub(super) fn is_kernel(&self) -> bool {
        matches!(self.what, What::Kernel(_))
    }

    fn name(&self) -> &str {
        match &self.what {
            What::Kernel(name) => name,
            What::Copy(direction, _) => direction.name(),
        }
    }
}
