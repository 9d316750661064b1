//! What all objects of a null device share: what is pending, what was submitted, what is to fail.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::command_buffer::Recording;
use super::{Call, Options, Point, Semaphore, Submitted, TICKS_PER_COMMAND};
use crate::hal::SemaphorePoint;
use crate::{DlhalStatus, Error, Result};

/// A submission that has not run. It keeps what its commands name.
pub(super) struct Pending {
    pub(super) queue: usize,
    pub(super) wait_points: Vec<Point>,
    pub(super) signal_points: Vec<Point>,
    pub(super) waits: Vec<SemaphorePoint>,
    pub(super) recordings: Vec<Arc<Recording>>,
    pub(super) signals: Vec<SemaphorePoint>,
}

pub(super) struct Timeline {
    pub(super) options: Options,
    state: Mutex<State>,
    /// Held while a submission runs, so that submissions run one after the other while the state
    /// can be read, by a kernel closure too.
    execution: Mutex<()>,
    used: AtomicU64,
    live_buffers: AtomicU64,
    ticks: AtomicU64,
}

#[derive(Default)]
struct State {
    ids: u64,
    buffers: u64,
    next_address: u64,
    pending: VecDeque<(usize, Pending)>,
    log: Vec<Submitted>,
    faults: Vec<(Call, u64, Error)>,
    lost: Option<Error>,
    semaphores: Vec<Weak<Semaphore>>,
}

/// Where device addresses start: no address of the host, so that a mix-up faults.
const FIRST_ADDRESS: u64 = 0x7_0000_0000_0000;

impl Timeline {
    pub(super) fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            ticks: AtomicU64::new(options.first_tick),
            options,
            state: Mutex::new(State { next_address: FIRST_ADDRESS, ..State::default() }),
            execution: Mutex::new(()),
            used: AtomicU64::new(0),
            live_buffers: AtomicU64::new(0),
        })
    }

    /// The start of every call: fails if the device is lost or the call was ordered to.
    pub(super) fn enter(&self, call: Call) -> Result<()> {
        let fault = {
            let mut state = self.state.lock();
            if let Some(error) = &state.lost {
                return Err(error.clone());
            }
            let mut due = None;
            for (index, (faulty, left, error)) in state.faults.iter_mut().enumerate() {
                if *faulty == call {
                    if *left == 0 && due.is_none() {
                        due = Some((index, error.clone()));
                    }
                    *left = left.saturating_sub(1);
                }
            }
            due.map(|(index, error)| {
                state.faults.remove(index);
                error
            })
        };
        let Some(error) = fault else { return Ok(()) };
        if error.status() == DlhalStatus::DeviceLost {
            self.lose(error.clone());
        }
        Err(error)
    }

    pub(super) fn add_fault(&self, call: Call, after: u64, error: Error) {
        self.state.lock().faults.push((call, after, error));
    }

    pub(super) fn health(&self) -> Result<()> {
        self.state.lock().lost.clone().map_or(Ok(()), Err)
    }

    /// The device is lost: what is pending never runs, every semaphore fails.
    pub(super) fn lose(&self, error: Error) {
        let (dropped, semaphores) = {
            let mut state = self.state.lock();
            state.lost.get_or_insert_with(|| error.clone());
            (std::mem::take(&mut state.pending), state.semaphores.clone())
        };
        semaphores.iter().filter_map(Weak::upgrade).for_each(|s| s.set_failure(error.clone()));
        drop(dropped);
    }

    pub(super) fn next_id(&self) -> u64 {
        let mut state = self.state.lock();
        state.ids += 1;
        state.ids
    }

    pub(super) fn watch(&self, semaphore: &Arc<Semaphore>) {
        let mut state = self.state.lock();
        state.semaphores.retain(|s| s.strong_count() > 0);
        state.semaphores.push(Arc::downgrade(semaphore));
    }

    /// The number and address of a new buffer. Addresses leave a gap, so that running past a
    /// buffer's end never meets its neighbour.
    pub(super) fn buffer_created(&self, size: u64) -> (u64, u64) {
        self.live_buffers.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.buffers += 1;
        let address = state.next_address;
        state.next_address += size.next_multiple_of(4096) + 4096;
        (state.buffers, address)
    }

    pub(super) fn buffer_dropped(&self) {
        self.live_buffers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn live_buffers(&self) -> u64 {
        self.live_buffers.load(Ordering::Relaxed)
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `size` bytes of the device's memory; returns what was taken before.
    pub(super) fn reserve(&self, size: u64) -> Result<u64> {
        let total = self.options.total_memory;
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(size).filter(|sum| *sum <= total)
            })
            .map_err(|used| {
                Error::out_of_memory(format!(
                    "{size} bytes asked of heap 0, which has {} of {total} bytes free",
                    total - used
                ))
            })
    }

    pub(super) fn unreserve(&self, size: u64) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }

    pub(super) fn submit(&self, pending: Pending) {
        let mut state = self.state.lock();
        let place = state.log.len();
        state.log.push(Submitted {
            queue: pending.queue,
            waits: pending.wait_points.clone(),
            commands: pending.recordings.iter().flat_map(|r| r.commands.clone()).collect(),
            signals: pending.signal_points.clone(),
            completed: false,
        });
        state.pending.push_back((place, pending));
    }

    pub(super) fn log(&self) -> Vec<Submitted> {
        self.state.lock().log.clone()
    }

    /// Runs all that can run, unless completion is left to the test.
    pub(super) fn advance_automatically(&self) {
        if !self.options.manual_completion {
            while self.complete_one() {}
        }
    }

    /// Runs the oldest submission that is first in its queue and whose waits are reached.
    pub(super) fn complete_one(&self) -> bool {
        let _turn = self.execution.lock();
        let Some((place, pending, outcome)) = self.take_ready() else { return false };
        let outcome =
            outcome.and_then(|()| pending.recordings.iter().try_for_each(|r| r.run(self)));
        // The objects go before the signal: whoever has waited sees them gone.
        let Pending { recordings, signals, .. } = pending;
        drop(recordings);
        if let Some(submitted) = self.state.lock().log.get_mut(place) {
            submitted.completed = true;
        }
        for point in &signals {
            let Ok(semaphore) = Semaphore::of(&*point.semaphore) else { continue };
            match &outcome {
                Ok(()) => semaphore.advance(point.value),
                Err(error) => semaphore.set_failure(error.clone()),
            }
        }
        true
    }

    /// What a timestamp would say now.
    pub(super) fn ticks(&self) -> u64 {
        let unused = 64 - self.options.timestamp_valid_bits.min(64);
        self.ticks.load(Ordering::Relaxed) & u64::MAX.checked_shr(unused).unwrap_or(0)
    }

    /// A command has run.
    pub(super) fn command_ran(&self) {
        self.ticks.fetch_add(TICKS_PER_COMMAND, Ordering::Relaxed);
    }

    pub(super) fn pending(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// Runs everything; fails if something waits for a point that nothing pending signals.
    pub(super) fn wait_idle(&self) -> Result<()> {
        while self.complete_one() {}
        self.health()?;
        match self.pending() {
            0 => Ok(()),
            stuck => Err(Error::precondition(format!(
                "{stuck} submissions wait for points that nothing submitted signals"
            ))),
        }
    }

    /// Runs what can run and gives up the rest.
    pub(super) fn shut_down(&self) {
        while self.complete_one() {}
        let stuck = std::mem::take(&mut self.state.lock().pending);
        for point in stuck.iter().flat_map(|(_, pending)| &pending.signals) {
            point.semaphore.fail(Error::aborted("the device was dropped before the work ran"));
        }
    }

    fn take_ready(&self) -> Option<(usize, Pending, Result<()>)> {
        let mut state = self.state.lock();
        let mut blocked = Vec::new();
        let mut found = None;
        for (index, (_, pending)) in state.pending.iter().enumerate() {
            if blocked.contains(&pending.queue) {
                continue;
            }
            if let Some(outcome) = readiness(&pending.waits) {
                found = Some((index, outcome));
                break;
            }
            blocked.push(pending.queue);
        }
        let (index, outcome) = found?;
        state.pending.remove(index).map(|(place, pending)| (place, pending, outcome))
    }
}

/// `None` while a wait is not reached; a failed semaphore's error as soon as there is one.
fn readiness(waits: &[SemaphorePoint]) -> Option<Result<()>> {
    let mut reached = true;
    for wait in waits {
        match wait.semaphore.query() {
            Ok(value) => reached &= value >= wait.value,
            Err(error) => return Some(Err(error)),
        }
    }
    reached.then_some(Ok(()))
}
