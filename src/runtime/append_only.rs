//! A table that only grows: an element, once there, keeps its index and its address for the
//! table's life, so readers need no lock and hold plain references.

use std::sync::OnceLock;

use parking_lot::Mutex;

const FIRST_CHUNK: u32 = 64;
/// Chunks double: 64, 128, …; these suffice for 2^31 elements.
const CHUNKS: usize = 25;

/// See the module's text.
pub(crate) struct AppendOnly<T> {
    chunks: [OnceLock<Box<[T]>>; CHUNKS],
    len: Mutex<u32>,
}

impl<T: Default> AppendOnly<T> {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS], len: Mutex::new(0) }
    }

    /// Adds `count` default elements; the index of the first. `None` once the table is full.
    pub(crate) fn grow(&self, count: u32) -> Option<u32> {
        let mut len = self.len.lock();
        let first = *len;
        let end = first.checked_add(count)?;
        let (last_chunk, _) = position(end.checked_sub(1)?);
        let (first_chunk, _) = position(first);
        for chunk in first_chunk..=last_chunk {
            let size = (FIRST_CHUNK as usize) << chunk;
            self.chunks
                .get(chunk)?
                .get_or_init(|| std::iter::repeat_with(T::default).take(size).collect());
        }
        *len = end;
        Some(first)
    }

    /// The element at `index`, if there is one.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (chunk, offset) = position(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }
}

/// Where an index lies: its chunk and its place in it.
fn position(index: u32) -> (usize, usize) {
    let shifted = u64::from(index) + u64::from(FIRST_CHUNK);
    let chunk = shifted.ilog2() - FIRST_CHUNK.ilog2();
    let start = u64::from(FIRST_CHUNK) << chunk;
    (chunk as usize, (shifted - start) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn elements_keep_their_index_and_address_while_the_table_grows() {
        let table = AppendOnly::<AtomicU32>::new();
        let first = table.grow(3).unwrap();
        let early = table.get(first + 2).unwrap();
        early.store(7, Ordering::Relaxed);
        for _ in 0..1000 {
            table.grow(10).unwrap();
        }
        assert!(std::ptr::eq(early, table.get(first + 2).unwrap()));
        assert_eq!(table.get(first + 2).unwrap().load(Ordering::Relaxed), 7);
    }

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            let place = position(index);
            assert_eq!(place, expected);
            expected = if place.1 + 1 == (64 << place.0) {
                (place.0 + 1, 0)
            } else {
                (place.0, place.1 + 1)
            };
        }
    }

    #[test]
    fn an_index_past_the_end_has_no_element() {
        let table = AppendOnly::<u32>::new();
        assert!(table.get(0).is_none());
        assert_eq!(table.grow(0), None);
        table.grow(1).unwrap();
        assert!(table.get(u32::MAX).is_none());
    }
}
