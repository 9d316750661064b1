//! The order of submissions to a device, and of what must not be done beside one.

use parking_lot::Mutex;

use crate::Result;

/// How many submissions were begun; locked while one is made.
#[derive(Default)]
pub(super) struct Submissions(Mutex<u64>);

impl Submissions {
    /// Makes a submission. One at a time, whatever the queue: NVIDIA's driver loses its own
    /// synchronisation otherwise, and the device hangs now and then
    /// (<https://github.com/ggml-org/llama.cpp/pull/28830>,
    /// <https://github.com/HansKristian-Work/vkd3d-proton/pull/1484>).
    pub(super) fn submit<T>(&self, submit: impl FnOnce() -> T) -> T {
        let mut begun = self.0.lock();
        *begun += 1;
        submit()
    }

    /// What `create` makes while nothing is submitted. Beside submissions it is only tried, because
    /// the first time it may take long; if one came in between, what was made is dropped and made
    /// again while submissions wait, which by then takes a look into the driver's cache.
    pub(super) fn create_between<T>(&self, create: impl Fn() -> Result<T>) -> Result<T> {
        let before = *self.0.lock();
        let created = create()?;
        let begun = self.0.lock();
        if *begun == before {
            return Ok(created);
        }
        drop(created);
        create()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::Error;

    #[test]
    fn what_no_submission_disturbs_is_made_once() {
        let submissions = Submissions::default();
        submissions.submit(|| ());
        let made = Cell::new(0);
        let create = || {
            made.set(made.get() + 1);
            Ok(made.get())
        };
        assert_eq!(submissions.create_between(create).unwrap(), 1);
        submissions.submit(|| ());
        assert_eq!(submissions.create_between(create).unwrap(), 2);
    }

    #[test]
    fn what_a_submission_disturbs_is_dropped_and_made_again_while_none_can_be_made() {
        let submissions = Submissions::default();
        let made = Cell::new(0);
        let alive = Rc::new(());
        let last = submissions.create_between(|| {
            assert_eq!(Rc::strong_count(&alive), 1, "the first is gone");
            made.set(made.get() + 1);
            if made.get() == 1 {
                submissions.submit(|| ());
            } else {
                assert!(submissions.0.is_locked());
            }
            Ok(alive.clone())
        });
        assert_eq!((made.get(), Rc::strong_count(&alive)), (2, 2));
        drop(last);
        assert!(!submissions.0.is_locked());
    }

    #[test]
    fn a_failure_is_the_answer_whether_disturbed_or_not() {
        let submissions = Submissions::default();
        let made = Cell::new(0);
        let failed = submissions.create_between(|| -> Result<()> {
            made.set(made.get() + 1);
            submissions.submit(|| ());
            Err(Error::invalid("a kernel"))
        });
        assert!(failed.is_err_and(|error| error.to_string().contains("a kernel")));
        assert_eq!(made.get(), 1);
        assert!(!submissions.0.is_locked());
    }
}
