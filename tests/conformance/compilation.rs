//! Kernels that are compiled and dropped while the device is at work.
#![cfg(feature = "wgsl")]

use std::sync::Arc;

use dlhal::module::Module;
use dlhal::runtime::{Function, Value};

use crate::common::{Api, rounds};

/// On several threads at once: a kernel is compiled while the device runs launches of earlier ones,
/// launched, and dropped before it has run.
pub(crate) fn kernels_come_and_go(api: &Api) {
    let rounds = rounds(6, 100) as u32;
    // Drivers keep what they compiled for later processes: no kernel is one of an earlier run's.
    let salt = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || come_and_go(api, salt ^ thread << 24, rounds));
        }
    });
}

fn come_and_go(api: &Api, salt: u32, rounds: u32) {
    const WORDS: usize = 4096;
    const FACTOR: u32 = 1_664_525;
    let stream = api.stream();
    let words = api.alloc(4 * WORDS as u64);
    api.write(words, &[0; 4 * WORDS], &stream).unwrap();
    let mut wanted = 0u32;
    for round in 0..rounds {
        // No two alike.
        let step = |line| salt.wrapping_add((round << 8) + line);
        let lines: String =
            (0..64).map(|l| format!("x = x * {FACTOR}u + {}u; ", step(l))).collect();
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
            @compute @workgroup_size(64) fn advance(@builtin(global_invocation_id) id: vec3u) {{
                var x = words[id.x]; {lines} words[id.x] = x;
            }}"
        );
        let module = Module::from_wgsl(&source).unwrap();
        let advance = Arc::new(Function::of(&module, "advance").unwrap());
        let extents = [WORDS as i64 / 64, 1, 1, 64, 1, 1].map(Value::Int);
        let args: Vec<_> = std::iter::once(Value::Address(words)).chain(extents).collect();
        for _ in 0..3 {
            api.launch(&advance, &args, &stream).unwrap();
            wanted = (0..64).fold(wanted, |x, l| x.wrapping_mul(FACTOR).wrapping_add(step(l)));
        }
        drop((module, advance));
        if round % 5 == 4 || round + 1 == rounds {
            let bytes = api.read(words, 4 * WORDS, &stream).unwrap();
            assert!(bytes.chunks_exact(4).all(|word| word == wanted.to_le_bytes()), "{round}");
        }
    }
    api.device.free(words).unwrap();
}
