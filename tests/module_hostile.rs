//! Corrupt, truncated and hostile input ends in a status, quickly and in little memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../fuzz/checks.rs"]
mod checks;
mod module_support;

use std::time::{Duration, Instant};

use dlhal::DlhalStatus;
use dlhal::module::{Module, spirv};
use module_support::{bytes_fixtures, data_dir, file_fixtures, fixture, signature, text};
use proptest::prelude::*;

/// The fixtures small enough to be mutated thousands of times.
fn small_fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all = bytes_fixtures();
    all.retain(|(_, bytes)| bytes.len() < 20_000);
    assert!(all.len() >= 10);
    all
}

fn spirv_fixtures() -> Vec<Vec<u8>> {
    std::fs::read_dir(data_dir().join("spirv"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "spv"))
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// A small generator of its own, so that a seed means the same cases for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut [u8]) {
        for _ in 0..1 + self.below(6) {
            let at = self.below(bytes.len());
            bytes[at] = match self.below(4) {
                0 => 0,
                1 => 0xff,
                2 => bytes[at] ^ (1 << self.below(8)),
                _ => self.below(256) as u8,
            };
        }
    }
}

#[test]
fn a_module_cut_anywhere_is_refused() {
    for (name, bytes) in small_fixtures() {
        for len in (0..bytes.len()).step_by(4) {
            let error = Module::from_bytes(&bytes[..len])
                .map(|_| panic!("{name} cut to {len} bytes loads"))
                .unwrap_err();
            assert_eq!(error.status(), DlhalStatus::DataLoss, "{name} cut to {len}: {error}");
        }
    }
}

#[test]
fn a_file_form_cut_anywhere_is_refused() {
    for (name, bytes, meta) in file_fixtures() {
        for len in (0..bytes.len()).step_by(if bytes.len() > 20_000 { 4096 } else { 4 }) {
            let error = Module::from_file_parts(&bytes[..len], &meta).unwrap_err();
            assert_eq!(error.status(), DlhalStatus::DataLoss, "{name} cut to {len}: {error}");
        }
    }
}

#[test]
fn spirv_cut_anywhere_is_refused() {
    for bytes in spirv_fixtures() {
        for len in 0..bytes.len() {
            if let Ok(words) = spirv::from_bytes(&bytes[..len]) {
                assert_eq!(spirv::read(&words).unwrap_err().status(), DlhalStatus::DataLoss);
            }
        }
    }
}

#[test]
fn each_of_the_first_words_flipped_ends_in_a_status() {
    for (name, bytes) in small_fixtures() {
        for word in 0..64.min(bytes.len() / 4) {
            for flip in [0xffu8, 0x80, 0x01] {
                let mut bad = bytes.clone();
                bad[word * 4..word * 4 + 4].iter_mut().for_each(|byte| *byte ^= flip);
                checks::module_from_bytes(&bad);
                assert!(bad != bytes, "{name}");
            }
        }
    }
    for bytes in spirv_fixtures() {
        for word in 0..bytes.len() / 4 {
            for flip in [0xffu8, 0x80, 0x01] {
                let mut bad = bytes.clone();
                bad[word * 4..word * 4 + 4].iter_mut().for_each(|byte| *byte ^= flip);
                checks::spirv(&bad);
            }
        }
    }
}

#[test]
fn the_header_words_of_spirv_flipped_are_refused() {
    let bytes = fixture("spirv/two_entries.spv");
    // Word 2 is the generator, which says nothing.
    for word in [0, 1, 3, 4] {
        let mut bad = bytes.clone();
        bad[word * 4..word * 4 + 4].iter_mut().for_each(|byte| *byte ^= 0xff);
        let signatures = [signature("first", "handle handle", "")];
        let error = Module::from_spirv_bytes(&bad, &signatures).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DataLoss, "word {word}: {error}");
    }
}

#[test]
fn what_is_no_module_is_refused_at_once() {
    let zeros = vec![0; 100 << 20];
    let begin = Instant::now();
    for (bytes, status) in [
        (&[][..], DlhalStatus::DataLoss),
        (&zeros[..], DlhalStatus::DataLoss),
        (b"\x7fELF", DlhalStatus::DataLoss),
        (b"not a module at all, only text", DlhalStatus::DataLoss),
        (&[0xff; 4096], DlhalStatus::DataLoss),
        (&fixture("spirv/two_entries.spv"), DlhalStatus::InvalidArgument),
        (&fixture("v0.8/add_f32.vulkan"), DlhalStatus::InvalidArgument),
    ] {
        let error = Module::from_bytes(bytes).unwrap_err();
        assert_eq!(error.status(), status, "{error}");
    }
    assert!(Module::from_spirv_bytes(&zeros, &[]).is_err());
    assert!(Module::from_file_parts(&zeros, "{}").is_err());
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[test]
fn huge_counts_at_every_place_are_refused() {
    let bytes = fixture("scalars_20.vulkan.bin");
    for at in 0..bytes.len().min(1200) - 8 {
        for huge in [u64::MAX, u64::MAX / 4, u64::MAX / 8 + 1, 1 << 40, u64::from(u32::MAX)] {
            let mut bad = bytes.clone();
            bad[at..at + 8].copy_from_slice(&huge.to_le_bytes());
            checks::module_from_bytes(&bad);
        }
    }
}

#[test]
fn a_format_of_another_runtime_is_named() {
    let mut bytes = fixture("add_f32.vulkan.bin");
    bytes[8..14].copy_from_slice(b"openCL");
    let len = bytes.len();
    let error = Module::from_bytes(&bytes[..len - 1]).unwrap_err();
    assert!(error.message().contains("`openCL`"), "{error}");
}

#[test]
fn a_file_that_contradicts_itself_is_refused_as_corrupt() {
    let meta = text("v0.8/scalars_20.tvm_meta.json");
    let file = fixture("v0.8/scalars_20.vulkan");
    for (from, to, message) in [
        ("\"main_kernel\": {", "\"other\": {", "has the signature of"),
        ("\"handle\",\n    \"handle\",", "\"handle\",", "binding 1"),
        ("\"float32\"", "\"float64\"", "reads float32"),
        ("\"float32\"", "\"floaty\"", "`floaty` is not a type name"),
        ("\"float32\"", "32", "list of strings"),
        ("\"threadIdx.x\"", "\"threadIdx.y\"", "no launch tag threadIdx.x"),
        ("\"launch_param_tags\"", "\"tags\"", "`launch_param_tags` is missing"),
        ("\"arg_types\": [", "\"arg_types\": 1, \"x\": [", "`arg_types` is no list"),
        ("\"func_info\"", "\"functions\"", "no object `func_info`"),
        ("{", "", "no JSON"),
    ] {
        assert!(meta.contains(from), "{from}");
        let bad = meta.replacen(from, to, 1);
        let error = Module::from_file_parts(&file, &bad).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DataLoss, "{error}");
        assert!(error.message().contains(message), "{error} should say {message}");
    }
}

#[test]
fn a_flag_that_contradicts_the_shader_is_refused_as_corrupt() {
    for (name, message) in [
        ("v0.8/scalars_4.bin", "but they are push constants"),
        ("v0.8/scalars_20.bin", "its flags do not say"),
    ] {
        let mut bytes = fixture(name);
        let magic = bytes.windows(4).position(|w| w == [3, 2, 0x23, 7]).unwrap();
        // The flags are before the word count.
        bytes[magic - 12] ^= 1;
        let error = Module::from_bytes(&bytes).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DataLoss);
        assert!(error.message().contains(message), "{error}");
    }
}

#[test]
fn functions_without_their_other_half_are_refused() {
    let bytes = fixture("v0.6.1/demo.bin");
    let at = |from: usize| {
        from + bytes[from..].windows(6).position(|w| w == b"matmul").expect("the name")
    };
    let (key, name) = (at(0), at(at(0) + 6));
    let shader = at(name + 6);
    for (places, message) in [
        (&[shader][..], "shader `matmux` has no signature"),
        (&[key, name][..], "has no signature"),
        (&[key][..], "function `matmux` has the signature of `matmul`"),
    ] {
        let mut bad = bytes.clone();
        for place in places {
            bad[place + 5] = b'x';
        }
        let error = Module::from_bytes(&bad).unwrap_err();
        assert_eq!(error.status(), DlhalStatus::DataLoss);
        assert!(error.message().contains(message), "{error} should say {message}");
    }
}

#[test]
fn thousands_of_mutated_modules_end_in_a_status_or_save_as_they_load() {
    let mut random = Random(0x5eed);
    let fixtures = small_fixtures();
    let mut loaded = 0;
    for _ in 0..6000 {
        let mut bytes = fixtures[random.below(fixtures.len())].1.clone();
        random.mutate(&mut bytes);
        loaded += usize::from(checks::module_from_bytes(&bytes));
    }
    assert!(loaded > 100, "mutations must reach past the parser; {loaded} loaded");
}

#[test]
fn thousands_of_mutated_shaders_end_in_a_status() {
    let mut random = Random(0xdead_beef);
    let fixtures = spirv_fixtures();
    for _ in 0..6000 {
        let mut bytes = fixtures[random.below(fixtures.len())].clone();
        random.mutate(&mut bytes);
        checks::spirv(&bytes);
    }
}

#[test]
fn thousands_of_mutated_meta_files_end_in_a_status() {
    let mut random = Random(0x1234_5678);
    let fixtures: Vec<_> =
        file_fixtures().into_iter().filter(|(_, bytes, _)| bytes.len() < 20_000).collect();
    for _ in 0..4000 {
        let (_, file, meta) = &fixtures[random.below(fixtures.len())];
        let (mut file, mut meta) = (file.clone(), meta.clone().into_bytes());
        random.mutate(&mut meta);
        if random.below(4) == 0 {
            random.mutate(&mut file);
        }
        checks::meta_file(&file, &meta);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_end_in_a_status(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        checks::module_from_bytes(&bytes);
        checks::spirv(&bytes);
        checks::meta_file(&bytes, &bytes);
    }

    #[test]
    fn any_words_behind_a_sound_header_end_in_a_status(
        body in prop::collection::vec((0u16..400, prop::collection::vec(0u32..40, 0..8)), 0..60)
    ) {
        let mut words = vec![0x0723_0203, 0x0001_0300, 0, 64, 0];
        for (opcode, operands) in body {
            words.push((operands.len() as u32 + 1) << 16 | u32::from(opcode));
            words.extend(operands);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        checks::spirv(&bytes);
    }
}
