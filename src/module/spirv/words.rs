//! SPIR-V as words: byte order, the header, and the walk that proves every instruction whole.

use std::borrow::Cow;
use std::fmt;

use ::spirv::Op;

use crate::{Error, Result};

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;

/// Words before the first instruction.
pub(super) const HEADER: usize = 5;

/// The largest id bound that the specification lets a consumer be asked to take.
const MAX_BOUND: u32 = 0x3f_ffff;

const OP_ENTRY_POINT: u16 = 15;

/// Whether `bytes` starts as a SPIR-V module of either byte order.
pub fn is_spirv(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|first| {
        let word = u32::from_le_bytes(*first);
        word == MAGIC || word == MAGIC.swap_bytes()
    })
}

/// The words of a module stored as bytes of either byte order.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<u32>> {
    if !bytes.len().is_multiple_of(4) {
        return Err(Error::data_loss(format!(
            "SPIR-V is a sequence of 4-byte words, but {} bytes are no multiple of 4",
            bytes.len()
        )));
    }
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    match native_order(&words)? {
        Cow::Borrowed(_) => Ok(words),
        Cow::Owned(swapped) => Ok(swapped),
    }
}

/// `words` in this machine's byte order, swapped if the magic number says so.
pub(crate) fn native_order(words: &[u32]) -> Result<Cow<'_, [u32]>> {
    match words.first() {
        Some(&MAGIC) => Ok(Cow::Borrowed(words)),
        Some(&first) if first == MAGIC.swap_bytes() => {
            Ok(Cow::Owned(words.iter().map(|word| word.swap_bytes()).collect()))
        }
        Some(first) => Err(Error::data_loss(format!(
            "SPIR-V starts with {MAGIC:#010x}, this with {first:#010x}"
        ))),
        None => Err(Error::data_loss("the SPIR-V module has 0 bytes")),
    }
}

/// `words` with the entry point `from` called `to`. The words must have passed [`super::read`].
pub fn rename_entry_point(words: &[u32], from: &str, to: &str) -> Result<Vec<u32>> {
    let module = Words::new(words)?;
    let mut renamed = words[..HEADER].to_vec();
    for instruction in module.instructions() {
        let operands = instruction.operands;
        match (instruction.opcode, operands) {
            (OP_ENTRY_POINT, [model, function, rest @ ..]) => {
                let (name, name_words) = string(rest)?;
                let new = if name == from.as_bytes() { to.as_bytes() } else { &name };
                let mut body = vec![*model, *function];
                // The terminating zero byte always takes part of the last word.
                body.extend(new.chunks(4).map(|part| {
                    let mut word = [0; 4];
                    word[..part.len()].copy_from_slice(part);
                    u32::from_le_bytes(word)
                }));
                if new.len().is_multiple_of(4) {
                    body.push(0);
                }
                body.extend_from_slice(&rest[name_words..]);
                let count = u16::try_from(body.len() + 1).map_err(|_| {
                    Error::invalid(format!(
                        "the name `{to}` does not fit an instruction of 65535 words"
                    ))
                })?;
                renamed.push(u32::from(count) << 16 | u32::from(OP_ENTRY_POINT));
                renamed.extend(body);
            }
            (opcode, operands) => {
                // The walk has shown that the count fits 16 bits.
                renamed.push((operands.len() as u32 + 1) << 16 | u32::from(opcode));
                renamed.extend_from_slice(operands);
            }
        }
    }
    Ok(renamed)
}

/// A string operand: its bytes, and how many words it takes.
pub(super) fn string(operands: &[u32]) -> Result<(Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    for (at, word) in operands.iter().enumerate() {
        for byte in word.to_le_bytes() {
            if byte == 0 {
                return Ok((bytes, at + 1));
            }
            bytes.push(byte);
        }
    }
    Err(Error::data_loss("a SPIR-V string runs past the end of its instruction"))
}

/// A module whose header is sound and whose instructions fill it exactly.
pub(super) struct Words<'a> {
    words: &'a [u32],
}

/// One instruction.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub(super) opcode: u16,
    pub(super) operands: &'a [u32],
    /// Its place in the module, in words.
    pub(super) at: usize,
}

impl Instruction<'_> {
    /// The operation, where this library's edition of the specification has it.
    pub(super) fn op(&self) -> Option<Op> {
        Op::from_u32(u32::from(self.opcode))
    }
}

impl fmt::Display for Instruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op() {
            Some(op) => write!(f, "SPIR-V Op{op:?} at word {}", self.at),
            None => write!(f, "SPIR-V opcode {} at word {}", self.opcode, self.at),
        }
    }
}

impl<'a> Words<'a> {
    /// Checks the header and walks all instructions once. `words` must be in native order.
    pub(super) fn new(words: &'a [u32]) -> Result<Self> {
        let [magic, version, _generator, bound, schema, ..] = *words else {
            return Err(Error::data_loss(format!(
                "a SPIR-V module has a header of {HEADER} words, this has {}",
                words.len()
            )));
        };
        if magic != MAGIC {
            return Err(Error::data_loss(format!("the SPIR-V magic number is {magic:#010x}")));
        }
        if version & 0xff00_00ff != 0 || version >> 16 != 1 {
            return Err(Error::data_loss(format!("the SPIR-V version word is {version:#010x}")));
        }
        if bound == 0 || bound > MAX_BOUND {
            return Err(Error::data_loss(format!(
                "the SPIR-V id bound is {bound}, the specification allows 1 to {MAX_BOUND}"
            )));
        }
        if schema != 0 {
            return Err(Error::data_loss(format!("the SPIR-V schema is {schema}, not 0")));
        }
        let mut at = HEADER;
        while at < words.len() {
            let count = (words[at] >> 16) as usize;
            if count == 0 {
                return Err(Error::data_loss(format!(
                    "the SPIR-V instruction at word {at} has a word count of 0"
                )));
            }
            if count > words.len() - at {
                return Err(Error::data_loss(format!(
                    "the SPIR-V instruction at word {at} claims {count} words, {} are left",
                    words.len() - at
                )));
            }
            at += count;
        }
        Ok(Self { words })
    }

    pub(super) fn version(&self) -> (u8, u8) {
        let [_, minor, major, _] = self.words[1].to_le_bytes();
        (major, minor)
    }

    /// Every id is below this.
    pub(super) fn bound(&self) -> u32 {
        self.words[3]
    }

    pub(super) fn instructions(&self) -> impl Iterator<Item = Instruction<'a>> + use<'a> {
        let words = self.words;
        let mut at = HEADER;
        std::iter::from_fn(move || {
            let first = *words.get(at)?;
            let count = (first >> 16) as usize;
            let operands = words.get(at + 1..at + count)?;
            let instruction = Instruction { opcode: first as u16, operands, at };
            at += count;
            Some(instruction)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: [u32; 5] = [MAGIC, 0x0001_0300, 0, 10, 0];

    #[test]
    fn either_byte_order_gives_the_same_words() {
        let little: Vec<u8> = EMPTY.iter().flat_map(|word| word.to_le_bytes()).collect();
        let big: Vec<u8> = EMPTY.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert!(is_spirv(&little) && is_spirv(&big));
        assert_eq!(from_bytes(&little).unwrap(), EMPTY);
        assert_eq!(from_bytes(&big).unwrap(), EMPTY);
    }

    #[test]
    fn a_length_that_is_no_multiple_of_four_is_refused() {
        let error = from_bytes(&[3, 2, 0x23, 7, 0]).unwrap_err();
        assert!(error.message().contains("5 bytes are no multiple of 4"));
    }

    #[test]
    fn word_counts_of_zero_or_past_the_end_are_refused_with_their_place() {
        for (count, message) in [(0, "word count of 0"), (3, "claims 3 words, 2 are left")] {
            let mut words = EMPTY.to_vec();
            words.extend([count << 16 | 1, 0]);
            let error = Words::new(&words).err().unwrap();
            assert!(error.message().contains("at word 5"), "{error}");
            assert!(error.message().contains(message), "{error}");
        }
    }

    #[test]
    fn header_faults_are_told_apart() {
        for (at, value, message) in [
            (0, 0, "magic"),
            (1, 0x0002_0000, "version word is 0x00020000"),
            (3, 0, "bound is 0"),
            (3, u32::MAX, "bound is 4294967295"),
            (4, 1, "schema is 1"),
        ] {
            let mut words = EMPTY;
            words[at] = value;
            assert!(Words::new(&words).err().unwrap().message().contains(message));
        }
        assert!(Words::new(&EMPTY[..4]).err().unwrap().message().contains("this has 4"));
    }

    #[test]
    fn renaming_changes_the_entry_point_and_nothing_else() {
        let mut words = EMPTY.to_vec();
        words.extend([2 << 16 | 17, 1]);
        // OpEntryPoint GLCompute %4 "main" %7
        words.extend([6 << 16 | 15, 5, 4, u32::from_le_bytes(*b"main"), 0, 7]);
        let renamed = rename_entry_point(&words, "main", "kernel").unwrap();
        let instructions: Vec<_> = Words::new(&renamed).unwrap().instructions().collect();
        assert_eq!(instructions.len(), 2);
        assert_eq!(string(&instructions[1].operands[2..]).unwrap().0, b"kernel");
        assert_eq!(instructions[1].operands.last(), Some(&7));
        assert_eq!(rename_entry_point(&renamed, "kernel", "main").unwrap(), words);
        assert_eq!(rename_entry_point(&words, "other", "x").unwrap(), words);
    }
}
