//! Copies within a device by the kernel: which command moves what, and in what order.

use std::sync::Arc;

use dlhal::hal::{MemoryKind, Stages};
use dlhal::null::{self, Call, Command, KernelCall, Options};
use dlhal::runtime::{Tuning, thread};
use dlhal::{DlhalStatus, Result};

use crate::support::Rig;

/// The copy kernels as the host would compute them; everything else is left alone.
fn copy_kernels(call: &KernelCall<'_>) -> Result<()> {
    let words: Vec<usize> = call
        .constants
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()) as usize)
        .collect();
    let (from, skipped) = match (call.name, &words[..]) {
        ("dlhal_copy_aligned", &[from, _]) => (16 * from, 0),
        ("dlhal_copy_shifted", &[from, _, bits]) => (4 * from, bits / 8),
        _ => return Ok(()),
    };
    let size = 16 * words[1];
    let bytes = call.read(0)?;
    call.write(1, 0, &bytes[from + skipped..from + skipped + size])
}

fn rig(copy_kernel: Option<bool>, options: Options) -> Rig {
    let kernel: null::Kernel = Arc::new(copy_kernels);
    let tuning = Tuning { copy_kernel, ..Tuning::default() };
    Rig::tuned(Options { kernel: Some(kernel), ..options }, &tuning)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
}

#[test]
fn any_size_between_any_offsets_arrives_and_nothing_else_changes() {
    for mapped in [false, true] {
        let options = Options { map_device_memory: mapped, ..Options::default() };
        let rig = rig(Some(true), options);
        let stream = thread::stream(&rig.device).unwrap();
        let room = 20_000;
        let bytes = pattern(room);
        let (a, b) = (rig.alloc(room as u64), rig.alloc(room as u64));
        rig.write(a, &bytes, &stream).unwrap();
        let offsets = [0usize, 1, 2, 3, 4, 15, 16, 18, 253];
        for (from, to) in offsets.iter().flat_map(|a| offsets.iter().map(move |b| (*a, *b))) {
            for len in [63usize, 64, 65, 79, 96, 4099, 16_384] {
                let mut expected = vec![0xAA; room];
                rig.write(b, &expected, &stream).unwrap();
                rig.move_bytes(a + from as u64, b + to as u64, len as i64, &stream).unwrap();
                expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
                let got = rig.read(b, room, &stream).unwrap();
                assert!(got == expected, "{len} from {from} to {to}");
            }
        }
        assert!(rig.letters().contains('D'));
    }
}

#[test]
fn overlapping_copies_by_the_kernel_behave_like_memmove() {
    let rig = rig(Some(true), Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let address = rig.alloc(1000);
    let mut expected = pattern(1000);
    rig.write(address, &expected, &stream).unwrap();
    for (from, to) in [(0, 10), (10, 0), (0, 16), (3, 90)] {
        rig.move_bytes(address + from, address + to, 900, &stream).unwrap();
        expected.copy_within(from as usize..from as usize + 900, to as usize);
        assert_eq!(rig.read(address, 1000, &stream).unwrap(), expected);
    }
}

/// The commands between device memory that a copy of 1 MiB and 5 bytes makes.
fn commands_of_a_copy(rig: &Rig) -> String {
    let stream = thread::stream(&rig.device).unwrap();
    let size = (1 << 20) + 5;
    let [a, b] = [0; 2].map(|_| rig.alloc(size));
    rig.move_bytes(a, b, size as i64, &stream).unwrap();
    stream.flush().unwrap();
    rig.letters()
}

#[test]
fn the_kernel_is_used_where_it_is_wanted_and_edges_are_left_to_the_copy_command() {
    assert_eq!(commands_of_a_copy(&rig(Some(true), Options::default())), "DC");
    assert_eq!(commands_of_a_copy(&rig(Some(false), Options::default())), "C");
    // The null device is software.
    assert_eq!(commands_of_a_copy(&rig(None, Options::default())), "C");
}

#[test]
fn a_device_that_cannot_make_the_kernel_copies_by_the_command() {
    let rig = rig(Some(true), Options::default());
    rig.null.fail_call(Call::CreateExecutable, 0, DlhalStatus::Internal);
    assert_eq!(commands_of_a_copy(&rig), "C");
}

#[test]
fn a_barrier_orders_a_copy_by_the_kernel_and_what_uses_its_bytes() {
    let rig = rig(Some(true), Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let [a, b, c, other, target] = [0; 5].map(|_| rig.alloc(4096));
    rig.move_bytes(a, b, 4096, &stream).unwrap();
    rig.move_bytes(b, c, 4096, &stream).unwrap();
    rig.move_bytes(other, target, 4096, &stream).unwrap();
    rig.move_bytes(c, other, 30, &stream).unwrap();
    stream.flush().unwrap();
    // The third is independent; the fourth, by the copy command, reads what the second wrote and
    // overwrites what the third reads.
    assert_eq!(rig.letters(), "DBDDBC");
    let barriers: Vec<_> = rig
        .commands()
        .into_iter()
        .filter_map(|command| match command {
            Command::Barrier { before, after } => Some((before, after)),
            _ => None,
        })
        .collect();
    assert_eq!(barriers.len(), 2);
    for (before, after) in barriers {
        assert!(before.contains(Stages::COMPUTE) && after.contains(Stages::ON_DEVICE));
    }
}

#[test]
fn pinned_memory_of_the_host_is_left_to_the_copy_command() {
    let rig = rig(Some(true), Options::default());
    let stream = thread::stream(&rig.device).unwrap();
    let pinned = rig.device.allocate(4096, 64, MemoryKind::Host).unwrap();
    let device = rig.alloc(4096);
    rig.move_bytes(pinned, device, 4096, &stream).unwrap();
    stream.flush().unwrap();
    assert_eq!(rig.letters(), "C");
}
