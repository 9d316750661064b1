//! Puts the tables together into what launching a kernel needs.

use ::spirv::{ExecutionMode, StorageClass};

use super::layout::{Shape, round_up};
use super::module::{Constant, Tables, Variable};
use super::usage::{Usage, UsageMap};
use super::verify::verify;
use super::words::Words;
use super::{Binding, BindingKind, Block, EntryPoint, Shader};
use crate::{Error, Result};

/// More entry points than any real module has; each costs a pass over the module's variables.
const MAX_ENTRY_POINTS: usize = 1024;

/// Reads a module. `words` must be in this machine's byte order.
pub fn read(words: &[u32]) -> Result<Shader> {
    let words = Words::new(words)?;
    verify(&words)?;
    let tables = Tables::read(&words)?;
    if tables.entry_points.len() > MAX_ENTRY_POINTS {
        return Err(Error::data_loss(format!(
            "the SPIR-V module has {} entry points, more than {MAX_ENTRY_POINTS}",
            tables.entry_points.len()
        )));
    }
    let usage = UsageMap::new(&tables);
    let entry_points = tables
        .entry_points
        .iter()
        .map(|entry| {
            entry_point(&tables, &entry.name, entry.function, &usage)
                .map_err(|error| error.within(format!("entry point `{}`", entry.name)))
        })
        .collect::<Result<Vec<_>>>()?;
    if entry_points.is_empty() {
        return Err(Error::data_loss("the SPIR-V module has no compute entry point"));
    }
    Ok(Shader {
        version: words.version(),
        capabilities: tables.capabilities,
        extensions: tables.extensions,
        processes: tables.processes,
        entry_points,
    })
}

fn entry_point(
    tables: &Tables<'_>,
    name: &str,
    function: u32,
    usage: &UsageMap,
) -> Result<EntryPoint> {
    if !tables.functions.contains_key(&function) {
        return Err(Error::data_loss(format!("its function {function} does not exist")));
    }
    let usage = usage.of(function);
    let alone = tables.entry_points.len() == 1;
    let reached: Vec<_> = tables
        .variables
        .iter()
        .filter(|variable| alone || usage.used.contains(&variable.id))
        .collect();
    let mut bindings = Vec::new();
    for variable in &reached {
        bindings.extend(binding(tables, variable, &usage)?);
    }
    bindings.sort_by_key(|binding| (binding.set, binding.binding));
    Ok(EntryPoint {
        name: name.to_owned(),
        local_size: local_size(tables, function)?,
        bindings,
        push_constants: push_constants(tables, &reached, &usage)?,
        workgroup_bytes: workgroup_bytes(tables, &usage)?,
        subgroup_size: mode(tables, function, ExecutionMode::SubgroupSize)
            .and_then(|operands| operands.first().copied()),
    })
}

fn binding(tables: &Tables<'_>, variable: &Variable, usage: &Usage) -> Result<Option<Binding>> {
    let Variable { id, class, pointee } = *variable;
    let is = |wanted: StorageClass| class == wanted as u32;
    if !is(StorageClass::StorageBuffer)
        && !is(StorageClass::Uniform)
        && !is(StorageClass::UniformConstant)
    {
        return Ok(None);
    }
    let decorations = &tables.decorations;
    let (Some(set), Some(binding)) = (decorations.set.get(&id), decorations.binding.get(&id))
    else {
        return Err(Error::data_loss(format!(
            "resource variable {id} lacks its DescriptorSet or Binding decoration"
        )));
    };
    let shape = &tables.types.get(pointee)?.shape;
    let kind = match shape {
        Shape::Struct { .. }
            if is(StorageClass::StorageBuffer) || decorations.buffer_block.contains(&pointee) =>
        {
            BindingKind::StorageBuffer
        }
        Shape::Struct { .. } if is(StorageClass::Uniform) => {
            BindingKind::UniformBuffer(tables.types.block(pointee, &tables.layout)?)
        }
        Shape::Array { .. } | Shape::RuntimeArray { .. } => {
            BindingKind::Other("an array of resources".into())
        }
        _ => BindingKind::Other("an image or sampler".into()),
    };
    let read_only = match shape {
        Shape::Struct { members } => {
            decorations.non_writable.contains(&id)
                || (!members.is_empty()
                    && (0..members.len() as u32)
                        .all(|m| decorations.non_writable_member.contains(&(pointee, m))))
        }
        _ => decorations.non_writable.contains(&id),
    };
    Ok(Some(Binding {
        set: *set,
        binding: *binding,
        kind,
        name: name(tables, id).or_else(|| name(tables, pointee)),
        used: usage.used.contains(&id),
        written: usage.written.contains(&id) && !read_only,
        element_align: element_align(tables, pointee),
    }))
}

fn name(tables: &Tables<'_>, id: u32) -> Option<String> {
    tables.names.get(&id).filter(|name| !name.is_empty()).cloned()
}

/// The alignment of the elements of a buffer's last array.
fn element_align(tables: &Tables<'_>, pointee: u32) -> Option<u32> {
    let Shape::Struct { members } = &tables.types.get(pointee).ok()?.shape else { return None };
    let last = tables.types.get(*members.last()?).ok()?;
    match last.shape {
        Shape::Array { element } | Shape::RuntimeArray { element } => {
            u32::try_from(tables.types.get(element).ok()?.natural.1).ok()
        }
        _ => None,
    }
}

fn push_constants(
    tables: &Tables<'_>,
    reached: &[&Variable],
    usage: &Usage,
) -> Result<Option<Block>> {
    let mut blocks: Vec<_> = reached
        .iter()
        .filter(|variable| variable.class == StorageClass::PushConstant as u32)
        .collect();
    if blocks.len() > 1 {
        blocks.retain(|variable| usage.used.contains(&variable.id));
    }
    match blocks[..] {
        [] => Ok(None),
        [block] => tables.types.block(block.pointee, &tables.layout).map(Some),
        _ => Err(Error::data_loss("it uses more than one push-constant block")),
    }
}

fn workgroup_bytes(tables: &Tables<'_>, usage: &Usage) -> Result<u64> {
    let mut total = 0u64;
    // Blocks with an explicit layout all start at the same place.
    let mut shared = 0u64;
    for variable in &tables.variables {
        if variable.class != StorageClass::Workgroup as u32 || !usage.used.contains(&variable.id) {
            continue;
        }
        let ty = tables.types.get(variable.pointee)?;
        if tables.decorations.block.contains(&variable.pointee) {
            shared = shared.max(ty.explicit);
        } else {
            let (size, align) = ty.natural;
            total = round_up(total, align).saturating_add(size);
        }
    }
    Ok(total.saturating_add(shared))
}

fn local_size(tables: &Tables<'_>, function: u32) -> Result<[u32; 3]> {
    let from_ids = |ids: &[u32]| -> Result<[u32; 3]> {
        let &[x, y, z] = ids else {
            return Err(Error::data_loss("its local size has no three parts"));
        };
        let part = |id| {
            u32::try_from(tables.integer(id)?)
                .map_err(|_| Error::data_loss("its local size does not fit 32 bits"))
        };
        Ok([part(x)?, part(y)?, part(z)?])
    };
    // The built-in constant wins over the execution modes.
    let size = if let Some(id) = tables.decorations.workgroup_size {
        match tables.constants.get(&id) {
            Some(Constant::Composite(parts)) => from_ids(parts)?,
            _ => return Err(Error::data_loss("its WorkgroupSize is no constant")),
        }
    } else if let Some(operands) = mode(tables, function, ExecutionMode::LocalSizeId) {
        from_ids(operands)?
    } else {
        match mode(tables, function, ExecutionMode::LocalSize) {
            Some(&[x, y, z]) => [x, y, z],
            _ => return Err(Error::data_loss("it declares no local size")),
        }
    };
    if size.contains(&0) {
        return Err(Error::data_loss(format!("its local size is {size:?}; no axis may be 0")));
    }
    Ok(size)
}

fn mode<'a>(tables: &Tables<'a>, function: u32, wanted: ExecutionMode) -> Option<&'a [u32]> {
    tables
        .modes
        .iter()
        .find(|(of, mode, _)| *of == function && *mode == wanted as u32)
        .map(|(_, _, operands)| *operands)
}
