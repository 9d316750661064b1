//! What a module or one of its functions is made of, for people and for tools.

use super::{Function, Module};
use crate::{Error, Result};

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A description, or source code.
    Text(String),
    /// A shader.
    Bytes(Vec<u8>),
}

impl Module {
    /// What the module, or the function called `function`, is made of. The format is `""` for a
    /// description in words, `"spirv"` for a function's shader, `"wgsl"` for the source that it was
    /// translated from.
    pub fn source(&self, function: Option<&str>, format: &str) -> Result<Source> {
        match (format, function) {
            ("", None) => Ok(Source::Text(self.to_string())),
            ("", Some(name)) => Ok(Source::Text(self.named(name)?.to_string())),
            ("spirv", _) => {
                let words = &self.one(function)?.spirv;
                Ok(Source::Bytes(words.iter().flat_map(|word| word.to_le_bytes()).collect()))
            }
            ("wgsl", _) => {
                let function = self.one(function)?;
                let source = function.source.as_ref().ok_or_else(|| {
                    Error::unsupported(format!(
                        "kernel `{}` was not made from WGSL; ask for \"spirv\"",
                        function.name()
                    ))
                })?;
                Ok(Source::Text(source.to_string()))
            }
            _ => Err(Error::unsupported(format!(
                "there is no source in the format `{format}`; ask for \"\", \"spirv\" or \"wgsl\""
            ))),
        }
    }

    fn one(&self, function: Option<&str>) -> Result<&Function> {
        match (function, self.functions()) {
            (Some(name), _) => Ok(self.named(name)?),
            (None, [only]) => Ok(only),
            (None, all) => Err(Error::invalid(format!(
                "the module has {} functions: name the one whose source is wanted",
                all.len()
            ))),
        }
    }

    /// The function called `name`, or an error that says which there are.
    pub fn named(&self, name: &str) -> Result<&std::sync::Arc<Function>> {
        self.function(name).ok_or_else(|| {
            let names: Vec<_> = self.functions().iter().map(|function| function.name()).collect();
            Error::not_found(format!(
                "the module has no function `{name}`; it has {}",
                names.join(", ")
            ))
        })
    }
}
