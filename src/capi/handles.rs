//! Handles: numbers that C holds in place of objects.
//!
//! A handle's value names a kind, a slot and the slot's generation; it is never an address. A freed
//! handle's slot gets a new generation, so stale, foreign and made-up values are found out and
//! nothing is ever dereferenced. Looking one up writes to nothing that threads share.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use crate::{Error, Result};

/// A handle type: what it stands for, and the table that its objects are in.
pub(super) trait Handle: Sized + 'static {
    /// The object, or a reference to it that is cheap to clone.
    type Object: Clone + Send + Sync + 'static;
    /// The kind's name in messages.
    const NAME: &'static str;
    /// Tells the kinds apart in a handle's value: 1 to 15.
    const KIND: u8;
    /// Where the objects are.
    fn table() -> &'static Table<Self::Object>;
}

/// Makes a handle of an object.
pub(super) fn insert<H: Handle>(object: H::Object) -> Result<*mut H> {
    let (index, generation) = H::table().insert(object)?;
    Ok(std::ptr::without_provenance_mut(encode(H::KIND, index, generation)))
}

/// The object of a handle, for the length of a call.
#[inline]
pub(super) fn get<H: Handle>(handle: *mut H) -> Result<Held<H::Object>> {
    let (index, generation) = decode::<H>(handle)?;
    H::table().get(index, generation).ok_or_else(|| stale::<H>(handle))
}

/// Ends a handle and gives its object back; `None` for null, which every free accepts.
pub(super) fn remove<H: Handle>(handle: *mut H) -> Result<Option<H::Object>> {
    if handle.is_null() {
        return Ok(None);
    }
    let (index, generation) = decode::<H>(handle)?;
    H::table().remove(index, generation).map(Some).ok_or_else(|| stale::<H>(handle))
}

/// Objects of one kind, in slots that stay where they are.
pub(super) struct Table<T> {
    /// Chunk `k` has `FIRST_CHUNK << k` slots.
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    vacant: Mutex<Vacant>,
}

struct Slot<T> {
    /// The next object's.
    generation: AtomicU32,
    occupant: ArcSwapOption<Occupant<T>>,
}

struct Occupant<T> {
    generation: u32,
    object: T,
}

/// An object that stays at least as long as this, whatever becomes of its handle.
pub(super) struct Held<T> {
    object: NonNull<T>,
    _occupant: Guard<Option<Arc<Occupant<T>>>>,
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: it lies in the occupant, which is held and not changed.
        unsafe { self.object.as_ref() }
    }
}

struct Vacant {
    /// Slots freed, to be used again.
    freed: Vec<u32>,
    /// The first slot never used. Slot 0 never is, so that no handle is null.
    unused: u32,
}

const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = 24;
const MAX_SLOTS: usize = FIRST_CHUNK * ((1 << CHUNKS) - 1);
/// Generations that a slot goes through; then it is not used again.
const MAX_GENERATION: u32 = (1 << 24) - 1;
/// In the top byte, beside the kind: no address of user space looks like this.
const MARK: u64 = 0xd0;

const _: () = assert!(size_of::<usize>() == 8, "a handle's parts need 64 bits");

impl<T: Clone> Table<T> {
    /// An empty table.
    pub(super) const fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            vacant: Mutex::new(Vacant { freed: Vec::new(), unused: 1 }),
        }
    }

    fn insert(&self, object: T) -> Result<(u32, u32)> {
        let index = {
            let mut vacant = self.vacant.lock();
            match vacant.freed.pop() {
                Some(index) => index,
                None if (vacant.unused as usize) < MAX_SLOTS => {
                    vacant.unused += 1;
                    vacant.unused - 1
                }
                None => {
                    return Err(Error::out_of_memory(format!(
                        "all {MAX_SLOTS} handles of this kind are in use; free some"
                    )));
                }
            }
        };
        let (chunk, offset) = place(index);
        let slots = self.chunks[chunk].get_or_init(|| {
            let vacant =
                || Slot { generation: AtomicU32::new(0), occupant: ArcSwapOption::const_empty() };
            std::iter::repeat_with(vacant).take(FIRST_CHUNK << chunk).collect()
        });
        let slot = &slots[offset];
        // Whoever emptied the slot has handed it on under the lock of `vacant`.
        let generation = slot.generation.load(Ordering::Relaxed);
        slot.occupant.store(Some(Arc::new(Occupant { generation, object })));
        Ok((index, generation))
    }

    #[inline]
    fn get(&self, index: u32, generation: u32) -> Option<Held<T>> {
        let occupant = self.slot(index)?.occupant.load();
        let found = occupant.as_ref().filter(|occupant| occupant.generation == generation)?;
        let object = NonNull::from(&found.object);
        Some(Held { object, _occupant: occupant })
    }

    fn remove(&self, index: u32, generation: u32) -> Option<T> {
        let slot = self.slot(index)?;
        let occupant = slot.occupant.load_full();
        let found = occupant.as_ref().filter(|occupant| occupant.generation == generation)?;
        let before = slot.occupant.compare_and_swap(&occupant, None);
        if !before.as_ref().is_some_and(|before| Arc::ptr_eq(before, found)) {
            // Another thread was faster.
            return None;
        }
        let next = generation + 1;
        slot.generation.store(next, Ordering::Relaxed);
        if next <= MAX_GENERATION {
            self.vacant.lock().freed.push(index);
        }
        Some(found.object.clone())
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        if index as usize >= MAX_SLOTS {
            return None;
        }
        let (chunk, offset) = place(index);
        self.chunks[chunk].get()?.get(offset)
    }
}

/// The chunk of a slot and the slot's place in it.
fn place(index: u32) -> (usize, usize) {
    let index = index as usize;
    let chunk = (index / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, index - FIRST_CHUNK * ((1 << chunk) - 1))
}

fn encode(kind: u8, index: u32, generation: u32) -> usize {
    let top = MARK | u64::from(kind);
    (top << 56 | u64::from(generation) << 32 | u64::from(index)) as usize
}

#[inline]
fn decode<H: Handle>(handle: *mut H) -> Result<(u32, u32)> {
    let value = handle.addr() as u64;
    if value >> 56 != MARK | u64::from(H::KIND) {
        return Err(foreign::<H>(value));
    }
    Ok((value as u32, (value >> 32) as u32 & MAX_GENERATION))
}

#[cold]
fn foreign<H: Handle>(value: u64) -> Error {
    if value == 0 {
        return Error::invalid(format!("the {} is null", H::NAME));
    }
    let what = if value >> 56 & 0xf0 == MARK { "a handle of another kind" } else { "no handle" };
    Error::invalid(format!("{value:#x} is {what}; {} was expected", H::NAME))
}

#[cold]
fn stale<H: Handle>(handle: *mut H) -> Error {
    Error::not_found(format!("the {} {:#x} is stale: it was freed", H::NAME, handle.addr()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::DlhalStatus;

    struct Apple;
    struct Pear;

    static APPLES: Table<Arc<u32>> = Table::new();
    static PEARS: Table<Arc<u32>> = Table::new();

    impl Handle for Apple {
        type Object = Arc<u32>;
        const NAME: &'static str = "apple";
        const KIND: u8 = 14;
        fn table() -> &'static Table<Arc<u32>> {
            &APPLES
        }
    }

    impl Handle for Pear {
        type Object = Arc<u32>;
        const NAME: &'static str = "pear";
        const KIND: u8 = 15;
        fn table() -> &'static Table<Arc<u32>> {
            &PEARS
        }
    }

    fn status<T>(result: Result<T>) -> DlhalStatus {
        result.map_or_else(|error| error.status(), |_| DlhalStatus::Ok)
    }

    #[test]
    fn a_handle_gives_its_object_until_it_is_removed() {
        let handle = insert::<Apple>(Arc::new(7)).unwrap();
        assert!(!handle.is_null());
        assert_eq!(**get(handle).unwrap(), 7);
        assert_eq!(*remove(handle).unwrap().unwrap(), 7);
        assert_eq!(status(get(handle)), DlhalStatus::NotFound);
        assert_eq!(status(remove(handle)), DlhalStatus::NotFound);
    }

    #[test]
    fn a_reused_slot_does_not_answer_to_the_old_handle() {
        let table = Table::new();
        let first = table.insert(1).unwrap();
        table.remove(first.0, first.1);
        let second = table.insert(2).unwrap();
        assert_eq!((first.0, second), (1, (1, 1)));
        assert!(table.get(first.0, first.1).is_none());
        assert_eq!(table.remove(first.0, first.1), None);
        assert_eq!(table.get(second.0, second.1).as_deref(), Some(&2));
    }

    #[test]
    fn null_foreign_and_made_up_values_are_told_apart() {
        let null = std::ptr::null_mut::<Apple>();
        assert_eq!(status(get(null)), DlhalStatus::InvalidArgument);
        assert_eq!(remove(null).map(|object| object.is_none()), Ok(true));
        let pear = insert::<Pear>(Arc::new(1)).unwrap().cast::<Apple>();
        let error = get(pear).err().unwrap();
        assert!(error.message().contains("another kind"), "{error}");
        for value in [1usize, 0x1000, usize::MAX, 0x7fff_dead_beef, (&raw const APPLES).addr()] {
            let handle = std::ptr::without_provenance_mut::<Apple>(value);
            assert_eq!(status(get(handle)), DlhalStatus::InvalidArgument, "{value:#x}");
        }
        for (index, generation) in [(0, 0), (u32::MAX, 0), (1 << 20, 0), (1, MAX_GENERATION)] {
            let value = encode(Apple::KIND, index, generation);
            let handle = std::ptr::without_provenance_mut::<Apple>(value);
            assert_eq!(status(get(handle)), DlhalStatus::NotFound, "{value:#x}");
        }
    }

    #[test]
    fn slots_fill_chunk_after_chunk_without_gaps() {
        let mut next = (0, 0);
        for index in 0..10_000 {
            let found = place(index);
            if found.1 == 0 && index > 0 {
                assert_eq!((next.0 + 1, FIRST_CHUNK << next.0), (found.0, next.1));
            } else {
                assert_eq!(found, next);
            }
            next = (found.0, found.1 + 1);
        }
        assert_eq!(place(MAX_SLOTS as u32 - 1).0, CHUNKS - 1);
    }

    #[test]
    fn a_slot_is_retired_when_its_generations_run_out() {
        let table = Table::new();
        let (index, _) = table.insert(0).unwrap();
        table.remove(index, 0);
        table.slot(index).unwrap().generation.store(MAX_GENERATION, Ordering::Relaxed);
        assert_eq!(table.insert(1).unwrap(), (index, MAX_GENERATION));
        assert_eq!(table.remove(index, MAX_GENERATION), Some(1));
        assert_eq!(table.insert(2).unwrap(), (index + 1, 0));
    }

    #[test]
    fn threads_insert_and_remove_at_once() {
        let table = Table::new();
        std::thread::scope(|scope| {
            for thread in 0..8u32 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..1000 {
                        let (index, generation) = table.insert((thread, round)).unwrap();
                        assert_eq!(*table.get(index, generation).unwrap(), (thread, round));
                        assert_eq!(table.remove(index, generation), Some((thread, round)));
                    }
                });
            }
        });
        assert!(table.vacant.lock().unused <= 9);
    }
}
