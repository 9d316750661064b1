//! Scalars of any number, in push constants that any device takes or in a uniform buffer.
#![cfg(feature = "wgsl")]

use std::sync::Arc;

use dlhal::module::Module;
use dlhal::runtime::{Function, Value};

use crate::common::Api;

/// A kernel of `count` scalars, int32 and float32 by turns, that writes their bits to its buffer.
fn echo(count: usize, uniform: bool) -> Arc<Function> {
    let lines = |line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let members = lines(&|i| format!("s{i}: {}, ", if i % 2 == 0 { "i32" } else { "f32" }));
    let stores = lines(&|i| format!("out[{i}] = bitcast<u32>(p.s{i}); "));
    let block = if uniform { "@group(0) @binding(1) var<uniform>" } else { "var<immediate>" };
    let module = Module::from_wgsl(&format!(
        "struct P {{ {members} }} {block} p: P;
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1) fn echo() {{ {stores} }}"
    ));
    Arc::new(Function::of(&module.unwrap(), "echo").unwrap())
}

pub(crate) fn any_number_of_scalars(api: &Api) {
    let stream = api.stream();
    for (count, uniform) in [1, 15, 16, 17, 20, 32, 33, 64, 200]
        .into_iter()
        .flat_map(|count| [(count, false), (count, true)])
    {
        let echo = echo(count, uniform);
        let targets = [0; 2].map(|_| api.alloc(4 * count as u64));
        // Two launches with nothing in between: neither may see the other's values.
        for (target, start) in targets.into_iter().zip([-7, 1000]) {
            let scalars = (0..count as i64).map(|i| match i % 2 {
                0 => Value::Int(start + i),
                _ => Value::Float((start + i) as f64),
            });
            let args: Vec<_> = std::iter::once(Value::Address(target))
                .chain(scalars)
                .chain([1; 6].map(Value::Int))
                .collect();
            api.launch(&echo, &args, &stream).unwrap();
        }
        for (target, start) in targets.into_iter().zip([-7, 1000]) {
            let bytes = api.read(target, 4 * count, &stream).unwrap();
            for (i, word) in bytes.chunks_exact(4).enumerate() {
                let value = start + i as i32;
                let wanted = match i % 2 {
                    0 => value.to_le_bytes(),
                    _ => (value as f32).to_le_bytes(),
                };
                assert_eq!(word, wanted, "scalar {i} of {count}, uniform: {uniform}");
            }
            api.device.free(target).unwrap();
        }
    }
}
