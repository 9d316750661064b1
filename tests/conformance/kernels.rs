//! Real modules against references computed here.

use dlhal::runtime::Value;

use crate::common::{Api, add_args, function};

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn sequence(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7919) % 211) as f32 / 16.0 - 6.0).collect()
}

pub(crate) fn saxpy_matmul_rowmax(api: &Api) {
    let stream = api.stream();
    let n = 1000;
    let (x, y) = (sequence(n), sequence(n + 5)[5..].to_vec());
    let (dx, dy) = (api.alloc(4 * n as u64), api.alloc(4 * n as u64));
    api.write(dx, &bytes(&x), &stream).unwrap();
    api.write(dy, &bytes(&y), &stream).unwrap();
    let saxpy = function("v0.6.1/demo.bin", "saxpy");
    let args = [
        Value::Address(dx),
        Value::Address(dy),
        Value::Float(2.5),
        Value::Uint(n as u64),
        Value::Int(n.div_ceil(64) as i64),
        Value::Int(64),
    ];
    api.launch(&saxpy, &args, &stream).unwrap();
    let result = f32s(&api.read(dy, 4 * n, &stream).unwrap());
    assert!((0..n).all(|i| (result[i] - (2.5 * x[i] + y[i])).abs() < 1e-4));

    let (m, n, k) = (33usize, 50usize, 65usize);
    let (a, b) = (sequence(m * k), sequence(k * n));
    let [da, db, dc] = [m * k, k * n, m * n].map(|len| api.alloc(4 * len as u64));
    api.write(da, &bytes(&a), &stream).unwrap();
    api.write(db, &bytes(&b), &stream).unwrap();
    let matmul = function("v0.6.1/demo.bin", "matmul");
    let extents = [n.div_ceil(16), m.div_ceil(16), 16, 16].map(|e| Value::Int(e as i64));
    let args: Vec<_> = [da, db, dc]
        .map(Value::Address)
        .into_iter()
        .chain([m, n, k].map(|e| Value::Int(e as i64)))
        .chain(extents)
        .collect();
    api.launch(&matmul, &args, &stream).unwrap();
    let result = f32s(&api.read(dc, 4 * m * n, &stream).unwrap());
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let wanted: f32 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
        assert!((result[i * n + j] - wanted).abs() < 2e-3, "{} {wanted}", result[i * n + j]);
    }

    let rowmax = function("v0.6.1/demo.bin", "rowmax");
    let dr = api.alloc(4 * m as u64);
    let args = [
        Value::Address(da),
        Value::Address(dr),
        Value::Int(k as i64),
        Value::Int(m as i64),
        Value::Int(64),
    ];
    api.launch(&rowmax, &args, &stream).unwrap();
    let result = f32s(&api.read(dr, 4 * m, &stream).unwrap());
    for (row, wanted) in
        a.chunks(k).map(|row| row.iter().copied().fold(f32::MIN, f32::max)).enumerate()
    {
        assert_eq!(result[row], wanted, "row {row}");
    }
    for address in [dx, dy, da, db, dc, dr] {
        api.device.free(address).unwrap();
    }
}

/// C = A + B in other types than float32. A device that lacks one refuses its kernel by name.
pub(crate) fn element_types(api: &Api) {
    let features = api.device.properties().features;
    type Element = fn(usize) -> Vec<u8>;
    let cases: [(&str, usize, bool, Element); 3] = [
        ("add_i8", 1, features.int8 && features.storage_8bit, |i| vec![(i % 60) as u8]),
        ("add_i64", 8, features.int64, |i| (i as i64 * 3_000_000_000).to_le_bytes().to_vec()),
        ("add_f16", 2, features.float16 && features.storage_16bit, |i| {
            half::f16::from_f32((i % 512) as f32).to_le_bytes().to_vec()
        }),
    ];
    for (name, width, supported, element) in cases {
        let stream = api.stream();
        let n = 200usize;
        let source: Vec<u8> = (0..n).flat_map(element).collect();
        let [a, b, c] = [0; 3].map(|_| api.alloc((n * width) as u64));
        api.write(a, &source, &stream).unwrap();
        api.write(b, &source, &stream).unwrap();
        let kernel = function(&format!("{name}.vulkan.bin"), "main_kernel");
        let launched = api.launch(&kernel, &add_args(a, b, c, n as i64), &stream);
        if !supported {
            let error = launched.unwrap_err();
            assert_eq!(error.status(), dlhal::DlhalStatus::Unsupported);
            continue;
        }
        launched.unwrap();
        let result = api.read(c, n * width, &stream).unwrap();
        let wanted: Vec<u8> = (0..n)
            .flat_map(|i| match name {
                "add_i8" => vec![((i % 60) * 2) as u8],
                "add_i64" => (i as i64 * 6_000_000_000).to_le_bytes().to_vec(),
                _ => half::f16::from_f32((i % 512) as f32 * 2.0).to_le_bytes().to_vec(),
            })
            .collect();
        assert_eq!(result, wanted, "{name}");
        [a, b, c].into_iter().for_each(|address| api.device.free(address).unwrap());
    }
}

pub(crate) fn reduction_self_test(api: &Api) {
    dlhal::runtime::self_test::run(&api.device).unwrap();
}

pub(crate) fn pipeline_cache(api: &Api) {
    let device = &api.device;
    let bytes = device.hal().pipeline_cache().unwrap();
    assert!(!bytes.is_empty());
    assert!(device.hal().merge_pipeline_cache(&bytes).unwrap());
    assert!(!device.hal().merge_pipeline_cache(&[]).unwrap());
    assert!(!device.hal().merge_pipeline_cache(&[7; 100]).unwrap());
    let mut corrupt = bytes.clone();
    let last = corrupt.len() - 1;
    corrupt[last] ^= 1;
    assert!(!device.hal().merge_pipeline_cache(&corrupt).unwrap());
    assert!(!device.hal().merge_pipeline_cache(&bytes[..bytes.len() - 1]).unwrap());
}
