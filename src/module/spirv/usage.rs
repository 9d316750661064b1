//! Which of the module's variables a function uses and which it may write.

use std::collections::{HashMap, HashSet};

use ::spirv::Op;

use super::module::Tables;
use super::words::Instruction;

/// What one function does to the module's variables, calls left out.
#[derive(Default)]
struct Effects {
    used: HashSet<u32>,
    written: HashSet<u32>,
    calls: Vec<u32>,
}

/// The variables an entry point reaches, and those it may write.
#[derive(Default)]
pub(super) struct Usage {
    pub(super) used: HashSet<u32>,
    pub(super) written: HashSet<u32>,
}

/// The effects of all functions, gathered once for all entry points.
pub(super) struct UsageMap {
    by_function: HashMap<u32, Effects>,
}

impl UsageMap {
    pub(super) fn new(tables: &Tables<'_>) -> Self {
        let globals: HashSet<u32> = tables.variables.iter().map(|variable| variable.id).collect();
        let by_function =
            tables.functions.iter().map(|(id, body)| (*id, effects(body, &globals))).collect();
        Self { by_function }
    }

    /// What `function` and all it calls do.
    pub(super) fn of(&self, function: u32) -> Usage {
        let mut usage = Usage::default();
        let mut seen = HashSet::from([function]);
        let mut pending = vec![function];
        while let Some(id) = pending.pop() {
            let Some(effects) = self.by_function.get(&id) else { continue };
            usage.used.extend(&effects.used);
            usage.written.extend(&effects.written);
            pending.extend(effects.calls.iter().filter(|callee| seen.insert(**callee)));
        }
        usage
    }
}

/// Which variable of the module a pointer leads into.
struct Roots<'a> {
    globals: &'a HashSet<u32>,
    /// The pointers made from others in the function.
    derived: HashMap<u32, u32>,
}

impl Roots<'_> {
    fn of(&self, pointer: u32) -> Option<u32> {
        if self.globals.contains(&pointer) {
            return Some(pointer);
        }
        self.derived.get(&pointer).copied()
    }
}

fn effects(body: &[Instruction<'_>], globals: &HashSet<u32>) -> Effects {
    let mut effects = Effects::default();
    let mut roots = Roots { globals, derived: HashMap::new() };
    for instruction in body {
        let operands = instruction.operands;
        let op = instruction.op();
        let read = |effects: &mut Effects, pointer: &u32| {
            effects.used.extend(roots.of(*pointer));
        };
        match (op, operands) {
            (Some(Op::Load | Op::AtomicLoad), [_, _, pointer, ..])
            | (Some(Op::ArrayLength), [_, _, pointer, ..]) => read(&mut effects, pointer),
            (
                Some(
                    Op::AccessChain
                    | Op::InBoundsAccessChain
                    | Op::PtrAccessChain
                    | Op::InBoundsPtrAccessChain
                    | Op::CopyObject,
                ),
                [_, result, base, ..],
            ) => {
                read(&mut effects, base);
                if let Some(root) = roots.of(*base) {
                    roots.derived.insert(*result, root);
                }
            }
            (Some(Op::CopyMemory), [target, source, ..]) => {
                read(&mut effects, source);
                write(&mut effects, &roots, &[*target]);
            }
            (Some(Op::FunctionCall), [_, _, callee, arguments @ ..]) => {
                effects.calls.push(*callee);
                write(&mut effects, &roots, arguments);
            }
            (Some(Op::ExtInst), [_, _, _, _, arguments @ ..]) => {
                write(&mut effects, &roots, arguments);
            }
            (Some(Op::CompositeInsert), [_, _, object, composite, ..]) => {
                write(&mut effects, &roots, &[*object, *composite]);
            }
            (Some(op), _) if takes_no_pointer(op) => {}
            // Stores, atomics, and whatever else might let a pointer escape. A literal that equals
            // a pointer's id counts as one: too many writes are slow, too few are wrong.
            _ => write(&mut effects, &roots, operands),
        }
    }
    effects
}

/// Counts as used and written every variable that one of `operands` leads into.
fn write(effects: &mut Effects, roots: &Roots<'_>, operands: &[u32]) {
    for root in operands.iter().filter_map(|operand| roots.of(*operand)) {
        effects.used.insert(root);
        effects.written.insert(root);
    }
}

/// Whether no operand of `op` can be a pointer to a variable of the module.
fn takes_no_pointer(op: Op) -> bool {
    const RANGES: [(Op, Op); 6] = [
        (Op::ConvertFToU, Op::SatConvertUToS),
        (Op::SNegate, Op::SMulExtended),
        (Op::Any, Op::LogicalNot),
        (Op::IEqual, Op::FUnordGreaterThanEqual),
        (Op::ShiftRightLogical, Op::BitCount),
        (Op::GroupNonUniformElect, Op::GroupNonUniformQuadSwap),
    ];
    let within = |(first, last): &(Op, Op)| (*first as u32..=*last as u32).contains(&(op as u32));
    match op {
        Op::ConvertPtrToU => false,
        Op::CompositeExtract
        | Op::VectorShuffle
        | Op::Switch
        | Op::LoopMerge
        | Op::SelectionMerge
        | Op::Label
        | Op::Branch
        | Op::BranchConditional
        | Op::Return
        | Op::Unreachable
        | Op::Variable
        | Op::FunctionParameter
        | Op::ControlBarrier
        | Op::MemoryBarrier
        | Op::Line
        | Op::NoLine
        | Op::Undef => true,
        _ => RANGES.iter().any(within),
    }
}
