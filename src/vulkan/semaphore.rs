//! Timeline semaphores: the driver's own, or a counter of the host that fences advance.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ash::vk;
use parking_lot::{Condvar, Mutex};

use super::error;
use super::fence::Fence;
use super::raw_device::{RawDevice, TimelineFunctions};
use super::shared::Shared;
use crate::hal::{self, Deadline, SemaphorePoint};
use crate::{Error, Result};

/// How long one sleep in the driver lasts at most. A wait has to end when the semaphore is failed
/// or the device is lost by another thread's call, and the driver knows of neither: between sleeps
/// it looks. Fifty looks a second cost nothing that could be measured.
pub(super) const SLICE: Duration = Duration::from_millis(20);

/// The most that a value may jump ahead: the least limit that a device may have
/// (`maxTimelineSemaphoreValueDifference`).
const MAX_JUMP: u64 = (1 << 31) - 1;

/// A timeline semaphore.
pub(super) struct Semaphore {
    raw: Arc<RawDevice>,
    /// For passing a failure on to work that waits; not counted, because queues hold semaphores.
    shared: Weak<Shared>,
    /// The first failure.
    failure: OnceLock<Error>,
    /// The highest value seen; never above the true one.
    reached: AtomicU64,
    kind: Kind,
}

enum Kind {
    Timeline {
        functions: TimelineFunctions,
        vk: vk::Semaphore,
        /// Held from looking at the value to signalling a greater one.
        signalling: Mutex<()>,
    },
    Fences {
        state: Mutex<Fenced>,
        /// The value, the failure or the pending signals have changed.
        changed: Condvar,
    },
}

#[derive(Default)]
struct Fenced {
    value: u64,
    /// Values with the fences that tell when they are reached, in order of submission.
    pending: VecDeque<(u64, Arc<Fence>)>,
}

impl Semaphore {
    pub(super) fn create(shared: &Arc<Shared>, initial: u64) -> Result<Arc<Self>> {
        let raw = &shared.raw;
        let kind = match raw.timeline {
            Some(functions) => {
                let vk = create_timeline(raw, initial)?;
                Kind::Timeline { functions, vk, signalling: Mutex::new(()) }
            }
            None => Kind::Fences {
                state: Mutex::new(Fenced { value: initial, pending: VecDeque::new() }),
                changed: Condvar::new(),
            },
        };
        Ok(Arc::new(Self {
            raw: raw.clone(),
            shared: Arc::downgrade(shared),
            failure: OnceLock::new(),
            reached: AtomicU64::new(initial),
            kind,
        }))
    }

    /// The semaphore of a point, if it is one of this device.
    #[inline]
    pub(super) fn of<'a>(point: &'a SemaphorePoint, raw: &Arc<RawDevice>) -> Result<&'a Self> {
        match point.semaphore.as_any().downcast_ref::<Self>() {
            Some(semaphore) if Arc::ptr_eq(&semaphore.raw, raw) => Ok(semaphore),
            _ => Err(Error::invalid(
                "a semaphore of another device was given; wait for it on the host instead",
            )),
        }
    }

    /// The driver's handle; null without timeline semaphores.
    #[inline]
    pub(super) fn vk(&self) -> vk::Semaphore {
        match &self.kind {
            Kind::Timeline { vk, .. } => *vk,
            Kind::Fences { .. } => vk::Semaphore::null(),
        }
    }

    /// Fails with the root error, if the semaphore was failed.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Checks a value that a submission is to wait for; it may not be too far ahead.
    #[inline]
    pub(super) fn awaitable(&self, value: u64) -> Result<()> {
        self.check()?;
        if value.saturating_sub(self.reached.load(Ordering::Acquire)) > MAX_JUMP {
            return within_reach(self.poll()?, value);
        }
        Ok(())
    }

    /// Checks a value that a submission is to signal. What is not seen to be reached yet passes:
    /// work in flight may reach it first, which only its submitter knows.
    #[inline]
    pub(super) fn signallable(&self, value: u64) -> Result<()> {
        self.awaitable(value)?;
        let reached = self.reached.load(Ordering::Acquire);
        if value <= reached { grows(reached, value) } else { Ok(()) }
    }

    /// The root error, if the semaphore was failed.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Stores a failure; the first one stays. Returns whether it was the first.
    pub(super) fn set_failure(&self, error: Error) -> bool {
        let first = self.failure.set(error).is_ok();
        if let Kind::Fences { state, changed } = &self.kind {
            // Without the lock a waiter between its look and its sleep would miss the call.
            let _state = state.lock();
            changed.notify_all();
        }
        first
    }

    /// Whether the device has passed `value`, whatever the semaphore's failure says. True as well
    /// once the device is lost: nothing runs any more.
    pub(super) fn passed(&self, value: u64) -> bool {
        self.reached.load(Ordering::Acquire) >= value
            || self.raw.is_lost()
            || self.poll().map_or_else(|_| self.raw.is_lost(), |reached| reached >= value)
    }

    /// Waits until the device has passed `value`, whatever the semaphore's failure says.
    pub(super) fn wait_passed(&self, value: u64, deadline: Deadline) -> Result<()> {
        self.wait_for(value, deadline, false)
    }

    /// The fence that tells when `value` is reached, in fence mode.
    pub(super) fn signal_by(&self, fence: &Arc<Fence>, value: u64) {
        let Kind::Fences { state, changed } = &self.kind else { return };
        state.lock().pending.push_back((value, fence.clone()));
        changed.notify_all();
    }

    /// Raises a failed semaphore to `value`, so that work that waits for it can leave the queue.
    pub(super) fn release(&self, value: u64) {
        if let Err(error) = self.raise(value) {
            log::warn!("a failed semaphore could not be released: {error}");
        }
    }

    /// The value reached.
    fn poll(&self) -> Result<u64> {
        let value = match &self.kind {
            Kind::Timeline { functions, vk, .. } => {
                let mut value = 0;
                // SAFETY: VUID-vkGetSemaphoreCounterValue-semaphore-parameter: it lives.
                let result = unsafe { (functions.counter)(self.raw.vk.handle(), *vk, &mut value) };
                if result != vk::Result::SUCCESS {
                    return Err(self.raw.failed("vkGetSemaphoreCounterValue", result));
                }
                if value == u64::MAX {
                    // Some drivers say by this value that the device is lost; no one signals it.
                    return Err(self.raw.lose("vkGetSemaphoreCounterValue"));
                }
                value
            }
            Kind::Fences { state, .. } => poll_fences(&mut state.lock())?,
        };
        self.reached.fetch_max(value, Ordering::AcqRel);
        Ok(value)
    }

    /// Advances from the host, to a value that must be greater than the present one.
    fn raise(&self, value: u64) -> Result<()> {
        match &self.kind {
            Kind::Timeline { functions, vk, signalling } => {
                let _signalling = signalling.lock();
                grows(self.poll()?, value)?;
                let info = vk::SemaphoreSignalInfo::default().semaphore(*vk).value(value);
                // SAFETY: VUID-VkSemaphoreSignalInfo-value-03258, -03260: the value is greater
                // than the present one, by less than the limit of every device (`grows`).
                let result = unsafe { (functions.signal)(self.raw.vk.handle(), &info) };
                if result != vk::Result::SUCCESS {
                    return Err(self.raw.failed("vkSignalSemaphore", result));
                }
            }
            Kind::Fences { state, changed } => {
                let mut state = state.lock();
                grows(poll_fences(&mut state)?, value)?;
                state.value = value;
                changed.notify_all();
            }
        }
        self.reached.fetch_max(value, Ordering::AcqRel);
        Ok(())
    }

    fn wait_for(&self, value: u64, deadline: Deadline, heed_failure: bool) -> Result<()> {
        loop {
            if heed_failure {
                self.check()?;
            }
            let reached = self.poll()?;
            // Memory read after a wait is worth something only if the device still lives.
            self.raw.check()?;
            if reached >= value {
                return Ok(());
            }
            let left = deadline.remaining();
            if left == Some(Duration::ZERO) {
                return Err(Error::deadline(format!(
                    "the semaphore is at {reached}, {value} was awaited"
                )));
            }
            self.sleep(value, left.map_or(SLICE, |left| left.min(SLICE)))?;
            if let Some(shared) = self.shared.upgrade() {
                shared.settle_failures();
            }
        }
    }

    /// Sleeps until `value` is reached, something has happened, or `timeout` has passed.
    fn sleep(&self, value: u64, timeout: Duration) -> Result<()> {
        match &self.kind {
            Kind::Timeline { functions, vk, .. } => {
                let (semaphores, values) = ([*vk], [value]);
                let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
                let nanoseconds = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
                // SAFETY: VUID-VkSemaphoreWaitInfo-pSemaphores-parameter: it lives; one value for
                // one semaphore.
                match unsafe { (functions.wait)(self.raw.vk.handle(), &info, nanoseconds) } {
                    vk::Result::SUCCESS => {
                        self.reached.fetch_max(value, Ordering::AcqRel);
                        Ok(())
                    }
                    vk::Result::TIMEOUT => Ok(()),
                    result => Err(self.raw.failed("vkWaitSemaphores", result)),
                }
            }
            Kind::Fences { state, changed } => {
                let mut state = state.lock();
                let fence = state.pending.iter().find(|(v, _)| *v >= value);
                if let Some(fence) = fence.map(|(_, fence)| fence.clone()) {
                    drop(state);
                    return fence.wait(timeout);
                }
                if state.value < value && self.failure.get().is_none() {
                    changed.wait_for(&mut state, timeout);
                }
                Ok(())
            }
        }
    }
}

impl hal::Semaphore for Semaphore {
    fn query(&self) -> Result<u64> {
        self.check()?;
        self.raw.check()?;
        self.poll()
    }

    fn signal(&self, value: u64) -> Result<()> {
        self.raw.check()?;
        self.check()?;
        self.raise(value)
    }

    fn fail(&self, error: Error) {
        if self.set_failure(error)
            && let Some(shared) = self.shared.upgrade()
        {
            shared.failed_semaphore();
        }
    }

    fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        self.wait_for(value, deadline, true)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        if let Kind::Timeline { vk, .. } = &self.kind {
            // SAFETY: VUID-vkDestroySemaphore-semaphore-05149: queues hold the semaphores of a
            // submission until it has passed.
            unsafe { self.raw.vk.destroy_semaphore(*vk, None) };
        }
    }
}

fn create_timeline(raw: &RawDevice, initial: u64) -> Result<vk::Semaphore> {
    let mut kind = vk::SemaphoreTypeCreateInfo::default()
        .semaphore_type(vk::SemaphoreType::TIMELINE)
        .initial_value(initial);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: VUID-VkSemaphoreTypeCreateInfo-timelineSemaphore-03252: the feature is enabled
    // where the functions are loaded.
    unsafe { raw.vk.create_semaphore(&info, None) }
        .map_err(|result| error::memory("vkCreateSemaphore", result))
}

/// Takes note of the fences that are signalled, in order.
fn poll_fences(state: &mut Fenced) -> Result<u64> {
    while let Some((value, fence)) = state.pending.front() {
        if !fence.signalled()? {
            break;
        }
        state.value = state.value.max(*value);
        state.pending.pop_front();
    }
    Ok(state.value)
}

fn grows(present: u64, value: u64) -> Result<()> {
    if value <= present {
        return Err(Error::invalid(format!(
            "semaphore signalled to {value}, but it has reached {present}; values only grow"
        )));
    }
    within_reach(present, value)
}

fn within_reach(present: u64, value: u64) -> Result<()> {
    if value.saturating_sub(present) > MAX_JUMP {
        return Err(Error::invalid(format!(
            "the value {value} is further from {present}, which the semaphore has reached, than \
             {MAX_JUMP} (maxTimelineSemaphoreValueDifference)"
        )));
    }
    Ok(())
}
