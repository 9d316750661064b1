//! Moves a shader's push constants into a uniform buffer.

use ::spirv::{Decoration, Op, StorageClass};

use super::words::{HEADER, Words};
use crate::{Error, Result};

/// `words` with the push-constant block as a uniform buffer at set 0 and `binding`.
///
/// The members stay where they are. The words must have passed [`super::read`].
pub fn push_constants_to_uniform(words: &[u32], binding: u32) -> Result<Vec<u32>> {
    let module = Words::new(words)?;
    let push = StorageClass::PushConstant as u32;
    let uniform = StorageClass::Uniform as u32;
    let blocks: Vec<u32> = module
        .instructions()
        .filter_map(|instruction| match (instruction.op(), instruction.operands) {
            (Some(Op::Variable), [_, id, class, ..]) if *class == push => Some(*id),
            _ => None,
        })
        .collect();
    let [block] = blocks[..] else {
        return Err(Error::unsupported(format!(
            "the shader has {} push-constant blocks; only one can become a uniform buffer",
            blocks.len()
        )));
    };
    let mut out = words[..HEADER].to_vec();
    let mut decorated = false;
    for instruction in module.instructions() {
        let operands = instruction.operands;
        let op = instruction.op();
        // The block has decorations of its own, so there is a first one to stand before.
        if !decorated && matches!(op, Some(Op::Decorate | Op::MemberDecorate)) {
            for (decoration, value) in
                [(Decoration::DescriptorSet, 0), (Decoration::Binding, binding)]
            {
                let body = [block, decoration as u32, value];
                out.push(4 << 16 | Op::Decorate as u32);
                out.extend(body);
            }
            decorated = true;
        }
        // The walk has shown that the count fits 16 bits.
        out.push((operands.len() as u32 + 1) << 16 | u32::from(instruction.opcode));
        let start = out.len();
        out.extend_from_slice(operands);
        let class = match op {
            Some(Op::TypePointer) => out.get_mut(start + 1),
            Some(Op::Variable) => out.get_mut(start + 2),
            _ => None,
        };
        if let Some(class) = class.filter(|class| **class == push) {
            *class = uniform;
        }
    }
    Ok(out)
}
