//! What is remembered of an allocation's uses: its last writer and the readers since, as points on
//! timelines. From it follows what a new use must wait for.

use super::timeline::{Point, TimelineId};

/// One use of an allocation by a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Passed once the use is done.
    pub(crate) point: Point,
    /// The command's number in its stream, to tell what a barrier has covered. A later stream on the
    /// same timeline counts anew.
    pub(crate) sequence: u64,
}

/// The uses of an allocation that later uses may have to wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    writer: Option<Access>,
    /// At most one per timeline, the latest.
    readers: Vec<Access>,
}

impl Usage {
    /// Enters a use.
    pub(crate) fn record(&mut self, access: Access, writes: bool) {
        if writes {
            self.readers.clear();
            self.writer = Some(access);
        } else {
            enter_latest(&mut self.readers, access);
        }
    }

    /// The uses that a new use must come after.
    pub(crate) fn before(&self, writes: bool) -> impl Iterator<Item = Access> + '_ {
        let readers = if writes { self.readers.as_slice() } else { &[] };
        self.writer.iter().chain(readers).copied()
    }

    /// Every use remembered.
    pub(crate) fn all(&self) -> impl Iterator<Item = Access> + '_ {
        self.before(true)
    }

    /// Adds the uses of other memory that joins this: whoever uses the whole comes after both.
    pub(crate) fn merge(&mut self, other: &Usage) {
        for access in other.all() {
            // As readers: a write to the joined memory waits for them, and a read before any write
            // reads undefined contents.
            enter_latest(&mut self.readers, access);
        }
        if let Some(writer) = self.writer.take() {
            enter_latest(&mut self.readers, writer);
        }
    }
}

/// Enters an access unless a later one of the same timeline is there.
fn enter_latest(accesses: &mut Vec<Access>, access: Access) {
    let same = |timeline: TimelineId| move |other: &&mut Access| other.point.timeline == timeline;
    let age = |access: &Access| (access.point.value, access.sequence);
    match accesses.iter_mut().find(same(access.point.timeline)) {
        Some(other) if age(other) < age(&access) => *other = access,
        Some(_) => {}
        None => accesses.push(access),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(timeline: TimelineId, sequence: u64) -> Access {
        Access { point: Point { timeline, value: sequence }, sequence }
    }

    #[test]
    fn a_read_waits_for_the_last_write_alone() {
        let mut usage = Usage::default();
        usage.record(access(0, 1), true);
        usage.record(access(1, 2), false);
        assert_eq!(usage.before(false).collect::<Vec<_>>(), [access(0, 1)]);
    }

    #[test]
    fn a_write_waits_for_the_last_write_and_every_read_since() {
        let mut usage = Usage::default();
        usage.record(access(0, 1), true);
        usage.record(access(1, 2), false);
        usage.record(access(2, 3), false);
        usage.record(access(1, 4), false);
        let before: Vec<_> = usage.before(true).collect();
        assert_eq!(before, [access(0, 1), access(1, 4), access(2, 3)]);
    }

    #[test]
    fn a_write_makes_earlier_reads_irrelevant() {
        let mut usage = Usage::default();
        usage.record(access(1, 2), false);
        usage.record(access(0, 3), true);
        assert_eq!(usage.all().collect::<Vec<_>>(), [access(0, 3)]);
    }

    #[test]
    fn joined_memory_waits_for_the_uses_of_both_parts() {
        let mut left = Usage::default();
        left.record(access(0, 1), true);
        let mut right = Usage::default();
        right.record(access(1, 5), true);
        right.record(access(0, 6), false);
        left.merge(&right);
        let mut before: Vec<_> = left.before(true).collect();
        before.sort_by_key(|a| a.point.timeline);
        assert_eq!(before, [access(0, 6), access(1, 5)]);
    }
}
