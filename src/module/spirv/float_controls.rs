//! Takes back a shader's wish that signed zeros, infinities and NaN are kept.

use ::spirv::{Capability, ExecutionMode, Op};

use super::words::{HEADER, Words};
use crate::Result;

/// The capability behind the wish.
pub const NAN_PRESERVE: u32 = Capability::SignedZeroInfNanPreserve as u32;

/// The capabilities of `SPV_KHR_float_controls`, of which this is one.
const FLOAT_CONTROLS: [Capability; 5] = [
    Capability::DenormPreserve,
    Capability::DenormFlushToZero,
    Capability::SignedZeroInfNanPreserve,
    Capability::RoundingModeRTE,
    Capability::RoundingModeRTZ,
];

/// `words` without the capability, its execution modes, and the extension if nothing else needs it.
///
/// The words must have passed [`super::read`].
pub fn without_nan_preserve(words: &[u32]) -> Result<Vec<u32>> {
    let module = Words::new(words)?;
    let others = module.instructions().any(|instruction| {
        instruction.op() == Some(Op::Capability)
            && instruction.operands.first().is_some_and(|capability| {
                *capability != NAN_PRESERVE
                    && FLOAT_CONTROLS.iter().any(|other| *other as u32 == *capability)
            })
    });
    let mut out = words[..HEADER].to_vec();
    for instruction in module.instructions() {
        let operands = instruction.operands;
        let goes = match (instruction.op(), operands) {
            (Some(Op::Capability), [capability]) => *capability == NAN_PRESERVE,
            (Some(Op::ExecutionMode), [_, mode, ..]) => {
                *mode == ExecutionMode::SignedZeroInfNanPreserve as u32
            }
            (Some(Op::Extension), name) => !others && is_float_controls(name),
            _ => false,
        };
        if !goes {
            // The walk has shown that the count fits 16 bits.
            out.push((operands.len() as u32 + 1) << 16 | u32::from(instruction.opcode));
            out.extend_from_slice(operands);
        }
    }
    Ok(out)
}

fn is_float_controls(name: &[u32]) -> bool {
    let bytes = name.iter().flat_map(|word| word.to_le_bytes());
    bytes.take_while(|byte| *byte != 0).eq(*b"SPV_KHR_float_controls")
}
