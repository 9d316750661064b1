//! What is remembered of an allocation's uses: its last writer and the readers since, as points on
//! timelines. From it follows what a new use must wait for.

use smallvec::SmallVec;

use super::timeline::Point;

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
    /// The last writer, if there is one; then readers since, at most one per timeline, the latest.
    accesses: SmallVec<[Access; 2]>,
    has_writer: bool,
}

impl Usage {
    /// Enters a use.
    #[inline]
    pub(crate) fn record(&mut self, access: Access, writes: bool) {
        if writes {
            self.accesses.clear();
            self.accesses.push(access);
            self.has_writer = true;
        } else {
            self.enter_reader(access);
        }
    }

    /// The uses that a new use must come after.
    #[inline]
    pub(crate) fn before(&self, writes: bool) -> &[Access] {
        if writes { &self.accesses } else { &self.accesses[..self.writers()] }
    }

    /// When every use remembered is over.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.accesses.iter().map(|access| access.point).collect()
    }

    /// Adds the uses of other memory that joins this: whoever uses the whole comes after both.
    pub(crate) fn merge(&mut self, other: &Usage) {
        let own = std::mem::take(self);
        for &access in own.accesses.iter().chain(&other.accesses) {
            // As readers: a write to the joined memory waits for them, and a read before any write
            // reads undefined contents.
            self.enter_reader(access);
        }
    }

    /// Enters a reader unless a later one of the same timeline is there.
    #[inline]
    fn enter_reader(&mut self, access: Access) {
        let age = |access: &Access| (access.point.value, access.sequence);
        let writers = self.writers();
        let mut readers = self.accesses[writers..].iter_mut();
        match readers.find(|reader| reader.point.timeline == access.point.timeline) {
            Some(other) if age(other) < age(&access) => *other = access,
            Some(_) => {}
            None => self.accesses.push(access),
        }
    }

    /// How many of the accesses are writers.
    fn writers(&self) -> usize {
        usize::from(self.has_writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::timeline::TimelineId;

    fn access(timeline: TimelineId, sequence: u64) -> Access {
        Access { point: Point { timeline, value: sequence }, sequence }
    }

    #[test]
    fn a_read_waits_for_the_last_write_alone() {
        let mut usage = Usage::default();
        usage.record(access(0, 1), true);
        usage.record(access(1, 2), false);
        assert_eq!(usage.before(false), [access(0, 1)]);
    }

    #[test]
    fn a_write_waits_for_the_last_write_and_every_read_since() {
        let mut usage = Usage::default();
        usage.record(access(0, 1), true);
        usage.record(access(1, 2), false);
        usage.record(access(2, 3), false);
        usage.record(access(1, 4), false);
        assert_eq!(usage.before(true), [access(0, 1), access(1, 4), access(2, 3)]);
    }

    #[test]
    fn a_write_makes_earlier_reads_irrelevant() {
        let mut usage = Usage::default();
        usage.record(access(1, 2), false);
        usage.record(access(0, 3), true);
        assert_eq!(usage.before(true), [access(0, 3)]);
    }

    #[test]
    fn joined_memory_waits_for_the_uses_of_both_parts() {
        let mut left = Usage::default();
        left.record(access(0, 1), true);
        let mut right = Usage::default();
        right.record(access(1, 5), true);
        right.record(access(0, 6), false);
        left.merge(&right);
        let mut before = left.before(true).to_vec();
        before.sort_by_key(|a| a.point.timeline);
        assert_eq!(before, [access(0, 6), access(1, 5)]);
    }
}
