//! The tables of a SPIR-V module: decorations, types, constants, variables, function bodies.

use std::collections::{HashMap, HashSet};

use ::spirv::{Decoration, ExecutionModel, Op};

use super::ScalarKind;
use super::layout::{LayoutDecorations, Types};
use super::verify::is_type;
use super::words::{Instruction, Words, string};
use crate::{Error, Result};

/// A module taken apart, with what the reflection needs of it.
#[derive(Default)]
pub(super) struct Tables<'a> {
    pub(super) capabilities: Vec<u32>,
    pub(super) extensions: Vec<String>,
    pub(super) processes: Vec<String>,
    pub(super) entry_points: Vec<RawEntryPoint>,
    /// Execution modes: entry function, mode, operands.
    pub(super) modes: Vec<(u32, u32, &'a [u32])>,
    pub(super) names: HashMap<u32, String>,
    pub(super) decorations: Decorations,
    pub(super) layout: LayoutDecorations,
    pub(super) types: Types,
    pub(super) constants: HashMap<u32, Constant>,
    /// The module's variables in order.
    pub(super) variables: Vec<Variable>,
    pub(super) functions: HashMap<u32, Vec<Instruction<'a>>>,
    entry_names: HashSet<String>,
}

pub(super) struct RawEntryPoint {
    pub(super) name: String,
    pub(super) function: u32,
}

/// The decorations that bind a variable, by id.
#[derive(Default)]
pub(super) struct Decorations {
    pub(super) set: HashMap<u32, u32>,
    pub(super) binding: HashMap<u32, u32>,
    pub(super) block: HashSet<u32>,
    pub(super) buffer_block: HashSet<u32>,
    pub(super) non_writable: HashSet<u32>,
    /// By structure and member.
    pub(super) non_writable_member: HashSet<(u32, u32)>,
    pub(super) workgroup_size: Option<u32>,
}

pub(super) enum Constant {
    /// An integer's low 64 bits.
    Value(u64),
    Composite(Vec<u32>),
}

pub(super) struct Variable {
    pub(super) id: u32,
    pub(super) class: u32,
    /// The type of what it points to.
    pub(super) pointee: u32,
}

impl<'a> Tables<'a> {
    /// Reads a module that has been verified.
    pub(super) fn read(words: &Words<'a>) -> Result<Self> {
        let mut tables = Self::default();
        for instruction in words.instructions() {
            tables.read_annotation(instruction).map_err(|e| e.within(instruction))?;
        }
        // The verification has shown that functions end and do not nest.
        let mut open: Option<(u32, Vec<Instruction<'a>>)> = None;
        for instruction in words.instructions() {
            match (instruction.op(), &mut open) {
                (Some(Op::Function), _) => {
                    let [_, id, ..] = instruction.operands else { return Err(short()) };
                    open = Some((*id, Vec::new()));
                }
                (Some(Op::FunctionEnd), _) => tables.functions.extend(open.take()),
                (_, Some((_, body))) => body.push(instruction),
                (Some(op), None) => tables
                    .read_global(op, instruction.operands)
                    .map_err(|e| e.within(instruction))?,
                (None, None) => {}
            }
        }
        Ok(tables)
    }

    /// The value of the integer constant `id`, specialization constants at their default.
    pub(super) fn integer(&self, id: u32) -> Result<u64> {
        match self.constants.get(&id) {
            Some(Constant::Value(value)) => Ok(*value),
            _ => Err(Error::data_loss(format!(
                "SPIR-V id {id} is used as an integer constant, which it is not"
            ))),
        }
    }

    fn read_annotation(&mut self, instruction: Instruction<'a>) -> Result<()> {
        let operands = instruction.operands;
        match (instruction.op(), operands) {
            (Some(Op::Capability), [capability, ..]) => self.capabilities.push(*capability),
            (Some(Op::Extension), name) => self.extensions.push(text(name)?.0),
            (Some(Op::ModuleProcessed), process) => {
                let (process, _) = string(process)?;
                self.processes.push(String::from_utf8_lossy(&process).into_owned());
            }
            (Some(Op::EntryPoint), [model, function, rest @ ..]) => {
                let (name, _) = text(rest)?;
                if *model == ExecutionModel::GLCompute as u32 {
                    if !self.entry_names.insert(name.clone()) {
                        return Err(Error::data_loss(format!("two entry points `{name}`")));
                    }
                    self.entry_points.push(RawEntryPoint { name, function: *function });
                }
            }
            (Some(Op::ExecutionMode | Op::ExecutionModeId), [function, mode, rest @ ..]) => {
                self.modes.push((*function, *mode, rest));
            }
            (Some(Op::Name), [id, rest @ ..]) => {
                let (name, _) = string(rest)?;
                self.names.insert(*id, String::from_utf8_lossy(&name).into_owned());
            }
            (Some(Op::Decorate), [id, decoration, rest @ ..]) => {
                self.decorate(*id, *decoration, rest);
            }
            (Some(Op::MemberDecorate), [id, member, decoration, rest @ ..]) => {
                match (Decoration::from_u32(*decoration), rest) {
                    (Some(Decoration::Offset), [offset, ..]) => {
                        self.layout.offsets.insert((*id, *member), *offset);
                    }
                    (Some(Decoration::NonWritable), _) => {
                        self.decorations.non_writable_member.insert((*id, *member));
                    }
                    _ => {}
                }
            }
            (
                Some(
                    Op::Capability
                    | Op::EntryPoint
                    | Op::ExecutionMode
                    | Op::ExecutionModeId
                    | Op::Name
                    | Op::Decorate
                    | Op::MemberDecorate,
                ),
                _,
            ) => return Err(short()),
            _ => {}
        }
        Ok(())
    }

    fn decorate(&mut self, id: u32, decoration: u32, rest: &[u32]) {
        let decorations = &mut self.decorations;
        match (Decoration::from_u32(decoration), rest) {
            (Some(Decoration::DescriptorSet), [set, ..]) => {
                decorations.set.insert(id, *set);
            }
            (Some(Decoration::Binding), [binding, ..]) => {
                decorations.binding.insert(id, *binding);
            }
            (Some(Decoration::Block), _) => {
                decorations.block.insert(id);
            }
            (Some(Decoration::BufferBlock), _) => {
                decorations.buffer_block.insert(id);
            }
            (Some(Decoration::NonWritable), _) => {
                decorations.non_writable.insert(id);
            }
            (Some(Decoration::ArrayStride), [stride, ..]) => {
                self.layout.array_strides.insert(id, *stride);
            }
            (Some(Decoration::BuiltIn), [builtin, ..])
                if *builtin == ::spirv::BuiltIn::WorkgroupSize as u32 =>
            {
                decorations.workgroup_size = Some(id);
            }
            _ => {}
        }
    }

    fn read_global(&mut self, op: Op, operands: &[u32]) -> Result<()> {
        match (op, operands) {
            (op, _) if is_type(op) => self.read_type(op, operands),
            (Op::Constant | Op::SpecConstant, [_, id, low, high @ ..]) => {
                let high = high.first().copied().unwrap_or(0);
                let value = u64::from(high) << 32 | u64::from(*low);
                self.constants.insert(*id, Constant::Value(value));
                Ok(())
            }
            (Op::ConstantNull, [_, id]) => {
                self.constants.insert(*id, Constant::Value(0));
                Ok(())
            }
            (Op::ConstantComposite | Op::SpecConstantComposite, [_, id, parts @ ..]) => {
                self.constants.insert(*id, Constant::Composite(parts.to_vec()));
                Ok(())
            }
            (Op::SpecConstantOp, [_, id, opcode, operands @ ..]) => {
                if let Some(value) = self.fold(*opcode, operands) {
                    self.constants.insert(*id, Constant::Value(value));
                }
                Ok(())
            }
            (Op::Variable, [ty, id, class, ..]) => self.read_variable(*ty, *id, *class),
            (
                Op::Constant
                | Op::SpecConstant
                | Op::ConstantNull
                | Op::ConstantComposite
                | Op::SpecConstantComposite
                | Op::SpecConstantOp
                | Op::Variable,
                _,
            ) => Err(short()),
            _ => Ok(()),
        }
    }

    fn read_variable(&mut self, ty: u32, id: u32, class: u32) -> Result<()> {
        match self.types.get(ty)?.shape {
            super::layout::Shape::Pointer { class: of_type, pointee } if of_type == class => {
                self.variables.push(Variable { id, class, pointee });
                Ok(())
            }
            _ => Err(Error::data_loss(format!(
                "SPIR-V variable {id} of storage class {class} has no pointer type of that class"
            ))),
        }
    }

    fn read_type(&mut self, op: Op, operands: &[u32]) -> Result<()> {
        let types = &mut self.types;
        match (op, operands) {
            (Op::TypeInt, [id, bits, signed]) => {
                let kind = if *signed == 0 { ScalarKind::Uint } else { ScalarKind::Int };
                types.scalar(*id, kind, *bits)
            }
            // A third operand names another encoding than IEEE's.
            (Op::TypeFloat, [id, bits]) => types.scalar(*id, ScalarKind::Float, *bits),
            (Op::TypeBool, [id]) => {
                types.bool(*id);
                Ok(())
            }
            (Op::TypeVector, [id, component, count]) => types.vector(*id, *component, *count),
            (Op::TypeMatrix, [id, column, count]) => types.matrix(*id, *column, *count),
            (Op::TypeArray, [id, element, length]) => {
                let Some(Constant::Value(count)) = self.constants.get(length) else {
                    return Err(Error::data_loss(format!(
                        "the length of SPIR-V array type {id} is no known constant"
                    )));
                };
                let stride = self.layout.array_strides.get(id).copied();
                types.array(*id, *element, *count, stride)
            }
            (Op::TypeRuntimeArray, [id, element]) => types.runtime_array(*id, *element),
            (Op::TypeStruct, [id, members @ ..]) => types.structure(*id, members, &self.layout),
            (Op::TypePointer, [id, class, pointee]) => {
                types.pointer(*id, *class, *pointee);
                Ok(())
            }
            (
                Op::TypeInt
                | Op::TypeBool
                | Op::TypeVector
                | Op::TypeMatrix
                | Op::TypeArray
                | Op::TypeRuntimeArray
                | Op::TypeStruct
                | Op::TypePointer,
                _,
            ) => Err(short()),
            (_, [id, ..]) => {
                types.other(*id);
                Ok(())
            }
            _ => Err(short()),
        }
    }

    /// The value of a specialization constant computed from others, where it is an integer.
    fn fold(&self, opcode: u32, operands: &[u32]) -> Option<u64> {
        let [left, right] = operands else { return None };
        let (left, right) = (self.integer(*left).ok()?, self.integer(*right).ok()?);
        match Op::from_u32(opcode)? {
            Op::IAdd => left.checked_add(right),
            Op::ISub => left.checked_sub(right),
            Op::IMul => left.checked_mul(right),
            Op::UDiv => left.checked_div(right),
            Op::UMod => left.checked_rem(right),
            _ => None,
        }
    }
}

fn text(operands: &[u32]) -> Result<(String, usize)> {
    let (bytes, words) = string(operands)?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::data_loss("a SPIR-V string is not UTF-8"))?;
    Ok((text, words))
}

fn short() -> Error {
    Error::data_loss("the instruction has a wrong number of operands")
}
