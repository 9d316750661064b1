//! SPIR-V types and how many bytes they take.

use std::collections::HashMap;

use super::{Block, Member, MemberType, ScalarKind, ScalarType};
use crate::{Error, Result};

/// More members than any block that scalar arguments fill. Nested structures could otherwise
/// unfold into a number that is exponential in the module's size.
const MAX_MEMBERS: usize = 4096;

/// Deeper nesting than any real block has.
const MAX_DEPTH: usize = 16;

/// A type and its sizes. Types refer only to types declared before them, so no walk can cycle.
#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) shape: Shape,
    /// Size and alignment where the layout is the implementation's (workgroup memory), by the
    /// rules of std430, which no implementation exceeds.
    pub(super) natural: (u64, u64),
    /// Bytes where offsets and strides are decorated.
    pub(super) explicit: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Scalar(ScalarType),
    Bool,
    Vector { component: u32, count: u32 },
    Array { element: u32 },
    RuntimeArray { element: u32 },
    Struct { members: Vec<u32> },
    Pointer { class: u32, pointee: u32 },
    Other,
}

/// What decorations say of layout.
#[derive(Default)]
pub(super) struct LayoutDecorations {
    /// By structure and member.
    pub(super) offsets: HashMap<(u32, u32), u32>,
    /// By array type.
    pub(super) array_strides: HashMap<u32, u32>,
}

#[derive(Default)]
pub(super) struct Types {
    by_id: HashMap<u32, Type>,
}

impl Types {
    pub(super) fn get(&self, id: u32) -> Result<&Type> {
        self.by_id.get(&id).ok_or_else(|| {
            Error::data_loss(format!("SPIR-V id {id} is used as a type before it is declared"))
        })
    }

    pub(super) fn scalar(&mut self, id: u32, kind: ScalarKind, bits: u32) -> Result<()> {
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return Err(Error::data_loss(format!("SPIR-V type {id} is a number of {bits} bits")));
        }
        let bytes = u64::from(bits / 8);
        self.insert(id, Shape::Scalar(ScalarType { kind, bits }), (bytes, bytes), bytes);
        Ok(())
    }

    pub(super) fn bool(&mut self, id: u32) {
        self.insert(id, Shape::Bool, (4, 4), 4);
    }

    pub(super) fn vector(&mut self, id: u32, component: u32, count: u32) -> Result<()> {
        if !(2..=16).contains(&count) {
            return Err(Error::data_loss(format!("SPIR-V type {id} is a vector of {count}")));
        }
        let (size, _) = self.get(component)?.natural;
        let bytes = size * u64::from(count);
        // A vector of three is aligned as one of four.
        let align = size * u64::from(count.next_power_of_two());
        self.insert(id, Shape::Vector { component, count }, (bytes, align), bytes);
        Ok(())
    }

    pub(super) fn matrix(&mut self, id: u32, column: u32, count: u32) -> Result<()> {
        let (size, align) = self.get(column)?.natural;
        let bytes = round_up(size, align).saturating_mul(u64::from(count));
        self.insert(id, Shape::Other, (bytes, align), bytes);
        Ok(())
    }

    pub(super) fn array(
        &mut self,
        id: u32,
        element: u32,
        length: u64,
        stride: Option<u32>,
    ) -> Result<()> {
        let ty = self.get(element)?;
        let (size, align) = ty.natural;
        let natural = round_up(size, align).saturating_mul(length);
        let stride = stride.map_or(round_up(ty.explicit, align), u64::from);
        let explicit = stride.saturating_mul(length);
        self.insert(id, Shape::Array { element }, (natural, align), explicit);
        Ok(())
    }

    pub(super) fn runtime_array(&mut self, id: u32, element: u32) -> Result<()> {
        let (_, align) = self.get(element)?.natural;
        self.insert(id, Shape::RuntimeArray { element }, (0, align), 0);
        Ok(())
    }

    pub(super) fn structure(
        &mut self,
        id: u32,
        members: &[u32],
        decorations: &LayoutDecorations,
    ) -> Result<()> {
        let (mut end, mut align, mut explicit) = (0u64, 1u64, 0u64);
        for (index, member) in members.iter().enumerate() {
            let ty = self.get(*member)?;
            let (member_size, member_align) = ty.natural;
            end = round_up(end, member_align).saturating_add(member_size);
            align = align.max(member_align);
            let offset = decorations.offsets.get(&(id, index as u32));
            let last = offset.map_or(0, |offset| u64::from(*offset)).saturating_add(ty.explicit);
            explicit = explicit.max(last);
        }
        let natural = (round_up(end, align), align);
        self.insert(id, Shape::Struct { members: members.to_vec() }, natural, explicit);
        Ok(())
    }

    pub(super) fn pointer(&mut self, id: u32, class: u32, pointee: u32) {
        self.insert(id, Shape::Pointer { class, pointee }, (8, 8), 8);
    }

    pub(super) fn other(&mut self, id: u32) {
        self.insert(id, Shape::Other, (0, 1), 0);
    }

    /// The layout of the block that the structure `id` is.
    pub(super) fn block(&self, id: u32, decorations: &LayoutDecorations) -> Result<Block> {
        let mut block = Block { size: bytes(self.get(id)?.explicit)?, members: Vec::new() };
        self.flatten(id, 0, 0, decorations, &mut block.members)?;
        Ok(block)
    }

    fn flatten(
        &self,
        id: u32,
        base: u64,
        depth: usize,
        decorations: &LayoutDecorations,
        out: &mut Vec<Member>,
    ) -> Result<()> {
        if out.len() >= MAX_MEMBERS || depth >= MAX_DEPTH {
            return Err(Error::data_loss(format!(
                "a scalar block has more than {MAX_MEMBERS} members or is nested deeper than \
                 {MAX_DEPTH}"
            )));
        }
        let ty = self.get(id)?;
        let Shape::Struct { members } = &ty.shape else {
            let ty_of_member = match ty.shape {
                Shape::Scalar(scalar) => MemberType::Scalar(scalar),
                // Not legal in a block, but some producers write it, and every driver known reads
                // a word that is 0 or not.
                Shape::Bool => MemberType::Scalar(ScalarType { kind: ScalarKind::Uint, bits: 32 }),
                _ => MemberType::Other(self.describe(ty)),
            };
            let member =
                Member { offset: bytes(base)?, size: bytes(ty.explicit)?, ty: ty_of_member };
            out.push(member);
            return Ok(());
        };
        for (index, member) in members.iter().enumerate() {
            let offset = decorations.offsets.get(&(id, index as u32)).ok_or_else(|| {
                Error::data_loss(format!(
                    "member {index} of the scalar block (SPIR-V id {id}) has no Offset decoration"
                ))
            })?;
            let base = base.saturating_add(u64::from(*offset));
            self.flatten(*member, base, depth + 1, decorations, out)?;
        }
        Ok(())
    }

    fn describe(&self, ty: &Type) -> String {
        match &ty.shape {
            Shape::Vector { component, count } => match self.by_id.get(component) {
                Some(Type { shape: Shape::Scalar(scalar), .. }) => {
                    format!("a vector of {count} {scalar}")
                }
                _ => format!("a vector of {count}"),
            },
            Shape::Array { .. } | Shape::RuntimeArray { .. } => "an array".into(),
            Shape::Pointer { .. } => "a pointer".into(),
            _ => "no scalar".into(),
        }
    }

    fn insert(&mut self, id: u32, shape: Shape, natural: (u64, u64), explicit: u64) {
        self.by_id.insert(id, Type { shape, natural, explicit });
    }
}

/// `value` rounded up to a multiple of `align`, at the most `u64::MAX`.
pub(super) fn round_up(value: u64, align: u64) -> u64 {
    value.checked_next_multiple_of(align.max(1)).unwrap_or(u64::MAX)
}

fn bytes(size: u64) -> Result<u32> {
    u32::try_from(size)
        .map_err(|_| Error::data_loss(format!("a scalar block of {size} bytes exceeds 4 GiB")))
}
