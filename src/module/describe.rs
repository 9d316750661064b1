//! Prints modules and kernels for people.

use std::fmt;

use super::function::{ArgKind, Function, GridFold, ScalarBlock};
use super::{LaunchTag, Module};
use crate::module::spirv::capability_name;

impl fmt::Display for Module {
    /// A line on the module, then a paragraph on each function.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.functions().len();
        writeln!(
            f,
            "module of kind {}, from {}, {count} function{}",
            self.kind().name(),
            self.origin(),
            if count == 1 { "" } else { "s" }
        )?;
        self.functions().iter().try_for_each(|function| write!(f, "\n{function}"))
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name())?;
        for (index, (arg, dtype)) in self.args.iter().zip(&self.signature.arg_types).enumerate() {
            write!(f, "  argument {index}: {dtype}, ")?;
            match arg {
                ArgKind::Buffer { binding, .. } => self.describe_buffer(f, *binding, arg)?,
                ArgKind::Scalar { offset, size, shader, .. } => {
                    writeln!(f, "scalar at byte {offset}, {size} bytes, read as {shader}")?;
                }
            }
        }
        match self.grid_fold {
            Some(GridFold::HiddenExtent { offset }) => {
                writeln!(f, "  hidden argument: grid size in x at byte {offset}")?;
            }
            Some(GridFold::OwnExtent) => {
                writeln!(f, "  grid: x folds into z where it is too long")?
            }
            None => {}
        }
        match self.scalars {
            ScalarBlock::None => writeln!(f, "  scalars: none")?,
            ScalarBlock::PushConstants { size } => {
                writeln!(f, "  scalars: push constants, {size} bytes")?;
            }
            ScalarBlock::Uniform { binding, size } => {
                writeln!(f, "  scalars: uniform buffer at binding {binding}, {size} bytes")?;
            }
        }
        let launch: Vec<_> = self.launch_args().map(LaunchTag::to_string).collect();
        writeln!(f, "  launch arguments: {}", list(&launch))?;
        let rest: Vec<_> = self
            .launch_tags
            .iter()
            .filter(|tag| !tag.takes_argument())
            .map(LaunchTag::to_string)
            .collect();
        if !rest.is_empty() {
            writeln!(f, "  other launch tags: {}", rest.join(", "))?;
        }
        let [x, y, z] = self.local_size();
        writeln!(f, "  local size: {x} x {y} x {z}")?;
        writeln!(f, "  workgroup memory: {} bytes", self.workgroup_bytes())?;
        if let Some(size) = self.entry.subgroup_size {
            writeln!(f, "  subgroup size: {size}")?;
        }
        let capabilities: Vec<_> =
            self.shader.capabilities.iter().map(|c| capability_name(*c)).collect();
        writeln!(f, "  capabilities: {}", list(&capabilities))?;
        writeln!(f, "  extensions: {}", list(&self.shader.extensions))?;
        let (major, minor) = self.shader.version;
        writeln!(f, "  SPIR-V {major}.{minor}, {} bytes", self.spirv.len() * 4)?;
        match &self.source {
            Some(source) => writeln!(f, "  source: WGSL, {} bytes", source.len()),
            None => Ok(()),
        }
    }
}

impl Function {
    fn describe_buffer(
        &self,
        f: &mut fmt::Formatter<'_>,
        binding: u32,
        arg: &ArgKind,
    ) -> fmt::Result {
        write!(f, "buffer at binding {binding}")?;
        let declared = self.entry.bindings.iter().find(|b| b.binding == binding);
        if let Some(name) = declared.and_then(|b| b.name.as_deref()) {
            write!(f, " ({})", name.escape_debug())?;
        }
        let access = match (declared.is_some_and(|b| b.used), arg) {
            (_, ArgKind::Buffer { written: true, .. }) => "written",
            (true, _) => "read only",
            (false, _) => "unused",
        };
        write!(f, ", {access}")?;
        match declared.and_then(|b| b.element_align) {
            Some(align) => writeln!(f, ", elements aligned to {align}"),
            None => writeln!(f),
        }
    }
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".into() } else { items.join(", ") }
}
