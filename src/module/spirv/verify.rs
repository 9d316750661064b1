//! Checks that ids are defined once and that what is used is defined, before a driver sees them.
//!
//! Drivers trust modules; one flipped bit in an id can end the process there. This is no full
//! validation: an instruction this file does not know is let through.

use std::collections::HashSet;

use ::spirv::Op;

use super::words::{Instruction, Words};
use crate::{Error, Result};

/// Refuses a module that defines an id twice or uses one that is never defined, and functions whose
/// blocks do not begin with a label and end with a terminator.
pub(super) fn verify(words: &Words<'_>) -> Result<()> {
    let mut ids = Ids { bound: words.bound(), ..Ids::default() };
    for instruction in words.instructions() {
        ids.collect(instruction).map_err(|error| error.within(instruction))?;
    }
    let mut place = Place::Outside;
    for instruction in words.instructions() {
        ids.check(instruction)
            .and_then(|()| place.step(instruction))
            .map_err(|error| error.within(instruction))?;
    }
    match place {
        Place::Outside => Ok(()),
        _ => Err(Error::data_loss("the last SPIR-V function has no end")),
    }
}

/// How an instruction defines an id.
#[derive(PartialEq)]
enum Defines {
    Nothing,
    /// The first operand.
    First,
    /// The second operand, of the type that is the first.
    Typed,
    /// Perhaps one of the first two.
    Unknown,
}

#[derive(Default)]
struct Ids {
    bound: u32,
    defined: HashSet<u32>,
    types: HashSet<u32>,
    labels: HashSet<u32>,
    functions: HashSet<u32>,
    /// What unknown instructions may have defined.
    perhaps: HashSet<u32>,
}

impl Ids {
    fn collect(&mut self, instruction: Instruction<'_>) -> Result<()> {
        let operands = instruction.operands;
        let op = instruction.op();
        let result = match defines(op) {
            Defines::Nothing => return Ok(()),
            Defines::Unknown => {
                self.perhaps.extend(&operands[..operands.len().min(2)]);
                return Ok(());
            }
            Defines::First => operands.first(),
            Defines::Typed => operands.get(1),
        };
        let id = *result.ok_or_else(|| Error::data_loss("the instruction has no result"))?;
        if id == 0 || id >= self.bound {
            return Err(Error::data_loss(format!(
                "id {id} is outside the bound of {}",
                self.bound
            )));
        }
        if !self.defined.insert(id) {
            return Err(Error::data_loss(format!("id {id} is defined twice")));
        }
        match op {
            Some(Op::Label) => self.labels.insert(id),
            Some(Op::Function) => self.functions.insert(id),
            Some(op) if is_type(op) => self.types.insert(id),
            _ => false,
        };
        Ok(())
    }

    fn check(&self, instruction: Instruction<'_>) -> Result<()> {
        let operands = instruction.operands;
        let Some(op) = instruction.op() else { return Ok(()) };
        if defines(Some(op)) == Defines::Typed {
            let ty = operands.first().copied().unwrap_or(0);
            if !self.types.contains(&ty) && !self.perhaps.contains(&ty) {
                return Err(Error::data_loss(format!("its type {ty} is not declared")));
            }
        }
        for id in uses(op, operands) {
            if !self.defined.contains(id) && !self.perhaps.contains(id) {
                return Err(Error::data_loss(format!("it uses id {id}, which is never defined")));
            }
        }
        if let Some(target) = targets(op, operands).iter().find(|id| !self.labels.contains(id)) {
            return Err(Error::data_loss(format!("it branches to id {target}, which is no label")));
        }
        match (op, operands) {
            (Op::FunctionCall, [_, _, callee, ..]) if !self.functions.contains(callee) => {
                Err(Error::data_loss(format!("it calls id {callee}, which is no function")))
            }
            _ => Ok(()),
        }
    }
}

/// Where in the module the walk is.
enum Place {
    Outside,
    /// In a function, before a block or between two.
    Between,
    Block,
}

impl Place {
    fn step(&mut self, instruction: Instruction<'_>) -> Result<()> {
        let wrong = |message: &str| Err(Error::data_loss(message));
        let op = instruction.op();
        *self = match (&self, op) {
            (Self::Outside, Some(Op::Function)) => Self::Between,
            (_, Some(Op::Function)) => return wrong("it begins inside another function"),
            (Self::Between, Some(Op::FunctionEnd)) => Self::Outside,
            (_, Some(Op::FunctionEnd)) => return wrong("it ends a function that is not complete"),
            (Self::Between, Some(Op::Label)) => Self::Block,
            (_, Some(Op::Label)) => return wrong("it begins inside another block"),
            (Self::Between, Some(Op::FunctionParameter | Op::Line | Op::NoLine)) => Self::Between,
            // Debug instructions may stand between the blocks of newer modules.
            (Self::Between, Some(Op::ExtInst)) => Self::Between,
            (Self::Between, _) => return wrong("it stands outside of any block"),
            (Self::Block, Some(op)) if is_terminator(op) => Self::Between,
            (Self::Outside, Some(op)) if is_terminator(op) => {
                return wrong("it stands outside of any function");
            }
            (Self::Outside, _) => Self::Outside,
            (Self::Block, _) => Self::Block,
        };
        Ok(())
    }
}

/// Whether `op` declares a type.
pub(super) fn is_type(op: Op) -> bool {
    between(op, Op::TypeVoid, Op::TypePipe)
        || matches!(
            op,
            Op::TypeNamedBarrier
                | Op::TypePipeStorage
                | Op::TypeCooperativeMatrixKHR
                | Op::TypeCooperativeMatrixNV
                | Op::TypeAccelerationStructureKHR
                | Op::TypeRayQueryKHR
        )
}

fn between(op: Op, first: Op, last: Op) -> bool {
    (first as u32..=last as u32).contains(&(op as u32))
}

fn is_terminator(op: Op) -> bool {
    between(op, Op::Branch, Op::Unreachable) || op == Op::TerminateInvocation
}

/// Conversions, arithmetic, comparisons and bit operations: all operands after the result are ids.
fn is_plain(op: Op) -> bool {
    between(op, Op::ConvertFToU, Op::GenericCastToPtr)
        || op == Op::Bitcast
        || between(op, Op::SNegate, Op::SMulExtended)
        || between(op, Op::Any, Op::FUnordGreaterThanEqual)
        || between(op, Op::ShiftRightLogical, Op::BitCount)
}

fn is_atomic(op: Op) -> bool {
    between(op, Op::AtomicLoad, Op::AtomicXor)
}

fn defines(op: Option<Op>) -> Defines {
    let Some(op) = op else { return Defines::Unknown };
    match op {
        Op::ExtInstImport | Op::String | Op::DecorationGroup | Op::Label => Defines::First,
        op if is_type(op) => Defines::First,
        Op::Nop
        | Op::SourceContinued
        | Op::Source
        | Op::SourceExtension
        | Op::Name
        | Op::MemberName
        | Op::Line
        | Op::NoLine
        | Op::ModuleProcessed
        | Op::Extension
        | Op::MemoryModel
        | Op::EntryPoint
        | Op::ExecutionMode
        | Op::ExecutionModeId
        | Op::Capability
        | Op::TypeForwardPointer
        | Op::FunctionEnd
        | Op::Store
        | Op::CopyMemory
        | Op::CopyMemorySized
        | Op::Decorate
        | Op::DecorateId
        | Op::DecorateString
        | Op::MemberDecorate
        | Op::MemberDecorateString
        | Op::GroupDecorate
        | Op::GroupMemberDecorate
        | Op::ImageWrite
        | Op::ControlBarrier
        | Op::MemoryBarrier
        | Op::AtomicStore
        | Op::AtomicFlagClear
        | Op::LoopMerge
        | Op::SelectionMerge
        | Op::LifetimeStart
        | Op::LifetimeStop => Defines::Nothing,
        op if is_terminator(op) => Defines::Nothing,
        op if is_plain(op) || is_atomic(op) => Defines::Typed,
        op if between(op, Op::ConstantTrue, Op::SpecConstantOp) => Defines::Typed,
        op if between(op, Op::GroupNonUniformElect, Op::GroupNonUniformQuadSwap) => Defines::Typed,
        Op::Undef
        | Op::ExtInst
        | Op::Function
        | Op::FunctionParameter
        | Op::FunctionCall
        | Op::Variable
        | Op::Load
        | Op::AccessChain
        | Op::InBoundsAccessChain
        | Op::PtrAccessChain
        | Op::InBoundsPtrAccessChain
        | Op::ArrayLength
        | Op::VectorExtractDynamic
        | Op::VectorInsertDynamic
        | Op::VectorShuffle
        | Op::CompositeConstruct
        | Op::CompositeExtract
        | Op::CompositeInsert
        | Op::CopyObject
        | Op::CopyLogical
        | Op::Transpose
        | Op::Phi => Defines::Typed,
        _ => Defines::Unknown,
    }
}

/// The operands of `op` that must be defined ids. Where literals follow, they are left out.
fn uses(op: Op, operands: &[u32]) -> &[u32] {
    let part = |from: usize, to: usize| operands.get(from..to.min(operands.len())).unwrap_or(&[]);
    match op {
        Op::Store | Op::CopyMemory => part(0, 2),
        Op::AtomicStore | Op::ControlBarrier | Op::MemoryBarrier => operands,
        Op::ReturnValue | Op::BranchConditional | Op::Switch => part(0, 1),
        Op::EntryPoint => part(1, 2),
        Op::ExecutionMode | Op::ExecutionModeId => part(0, 1),
        Op::Load | Op::ArrayLength | Op::CompositeExtract => part(2, 3),
        Op::CompositeInsert | Op::VectorShuffle => part(2, 4),
        Op::ExtInst => part(2, 3),
        Op::AccessChain
        | Op::InBoundsAccessChain
        | Op::PtrAccessChain
        | Op::InBoundsPtrAccessChain
        | Op::FunctionCall
        | Op::VectorExtractDynamic
        | Op::VectorInsertDynamic
        | Op::CompositeConstruct
        | Op::ConstantComposite
        | Op::SpecConstantComposite
        | Op::CopyObject
        | Op::CopyLogical
        | Op::Transpose
        | Op::Phi => part(2, usize::MAX),
        op if is_plain(op) || is_atomic(op) => part(2, usize::MAX),
        _ => &[],
    }
}

/// The operands of `op` that must be labels.
fn targets(op: Op, operands: &[u32]) -> &[u32] {
    let part = |from: usize, to: usize| operands.get(from..to.min(operands.len())).unwrap_or(&[]);
    match op {
        Op::Branch | Op::SelectionMerge => part(0, 1),
        Op::LoopMerge => part(0, 2),
        Op::BranchConditional => part(1, 3),
        Op::Switch => part(1, 2),
        _ => &[],
    }
}
