//! TVM's meta file: the signatures of a module in file form, as JSON.

use serde_json::{Map, Value, json};

use super::dtype::DataType;
use super::signature::Signature;
use super::{FormatVersion, Function};
use crate::{Error, Result};

const THREAD_AXIS_TAGS: &str = "thread_axis_tags";
const LAUNCH_PARAM_TAGS: &str = "launch_param_tags";
const ARG_EXTRA_TAGS: &str = "arg_extra_tags";

/// Reads a meta file. The keys tell which release wrote it.
pub(super) fn read(text: &str) -> Result<(Vec<Signature>, FormatVersion)> {
    let root: Value = serde_json::from_str(text)
        .map_err(|e| Error::data_loss(format!("the meta file is no JSON: {e}")))?;
    let table = root
        .get("func_info")
        .and_then(Value::as_object)
        .ok_or_else(|| Error::data_loss("the meta file has no object `func_info`"))?;
    let mut version = FormatVersion::V0_8;
    let mut signatures = Vec::with_capacity(table.len());
    for (key, info) in table {
        let signature = read_info(info, &mut version)
            .map_err(|error| error.within(format!("meta file, function `{key}`")))?;
        if signature.name != *key {
            return Err(Error::data_loss(format!(
                "meta file: function `{key}` has the signature of `{}`",
                signature.name
            )));
        }
        signatures.push(signature);
    }
    Ok((signatures, version))
}

/// Writes the meta file of `functions`. `tvm_version` is the same constant in every release.
pub(super) fn write<'a>(
    functions: impl Iterator<Item = &'a Function>,
    version: FormatVersion,
) -> Result<String> {
    let table: Map<String, Value> = functions
        .map(|function| (function.name().to_owned(), info(&function.signature, version)))
        .collect();
    let root = json!({ "tvm_version": "0.1.0", "func_info": table });
    serde_json::to_string_pretty(&root)
        .map_err(|e| Error::internal(format!("the meta file cannot be written: {e}")))
}

fn read_info(info: &Value, version: &mut FormatVersion) -> Result<Signature> {
    let list = |key: &str| -> Result<Option<&Vec<Value>>> {
        match info.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(Error::data_loss(format!("`{key}` is no list"))),
        }
    };
    let missing = |key: &str| Error::data_loss(format!("`{key}` is missing"));
    let name = info.get("name").and_then(Value::as_str).ok_or_else(|| missing("name"))?;
    let arg_types = strings(list("arg_types")?.ok_or_else(|| missing("arg_types"))?)
        .map(|name| {
            name.and_then(|n| n.parse::<DataType>().map_err(|e| Error::data_loss(e.message())))
        })
        .collect::<Result<_>>()?;
    let tags = match (list(LAUNCH_PARAM_TAGS)?, list(THREAD_AXIS_TAGS)?) {
        (Some(tags), None) => tags,
        (None, Some(tags)) => {
            *version = FormatVersion::V0_6_1;
            tags
        }
        (Some(_), Some(_)) => {
            return Err(Error::data_loss(format!(
                "both `{LAUNCH_PARAM_TAGS}` and `{THREAD_AXIS_TAGS}` are there"
            )));
        }
        (None, None) => return Err(missing(LAUNCH_PARAM_TAGS)),
    };
    let launch_tags = strings(tags).map(|tag| tag.map(str::to_owned)).collect::<Result<_>>()?;
    let mut extra_tags = Vec::new();
    if let Some(extras) = list(ARG_EXTRA_TAGS)? {
        *version = FormatVersion::V0_21;
        for extra in extras {
            let tag = extra.as_i64().and_then(|tag| i32::try_from(tag).ok()).ok_or_else(|| {
                Error::data_loss(format!("`{ARG_EXTRA_TAGS}` holds {extra}, no 32-bit integer"))
            })?;
            extra_tags.push(tag);
        }
    }
    Ok(Signature { name: name.to_owned(), arg_types, launch_tags, extra_tags })
}

fn strings(list: &[Value]) -> impl Iterator<Item = Result<&str>> {
    list.iter().map(|value| {
        value.as_str().ok_or_else(|| Error::data_loss(format!("a list of strings holds {value}")))
    })
}

fn info(signature: &Signature, version: FormatVersion) -> Value {
    let types: Vec<_> = signature.arg_types.iter().map(DataType::to_string).collect();
    let tags_key =
        if version == FormatVersion::V0_6_1 { THREAD_AXIS_TAGS } else { LAUNCH_PARAM_TAGS };
    let mut info = Map::new();
    info.insert("name".into(), signature.name.clone().into());
    info.insert("arg_types".into(), types.into());
    info.insert(tags_key.into(), signature.launch_tags.clone().into());
    if version.has_extra_tags() {
        info.insert(ARG_EXTRA_TAGS.into(), signature.extra_tags.clone().into());
    }
    info.into()
}
