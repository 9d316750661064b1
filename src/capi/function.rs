//! Functions of modules, and launches of them.

use std::ffi::c_char;
use std::sync::Arc;

use dlpark::ffi::{DLDataType, DLDevice};
use parking_lot::Mutex;

use super::args::{self, Out, SizedOut};
use super::boundary::boundary;
use super::dltensor;
use super::handles;
use super::objects;
use super::output::Buffer;
use super::types::{DlhalFunction, DlhalFunctionInfo, DlhalLaunch, DlhalStream, DlhalValue};
use super::values;
use crate::module::ScalarBlock;
use crate::runtime::{self, Function, Launch};
use crate::{DlhalStatus, Error};

/// What a function takes.
///
/// @param function  the function.
/// @param info      gets it; its `struct_size` must be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_function_get_info(
    function: DlhalFunction,
    info: *mut DlhalFunctionInfo,
) -> DlhalStatus {
    boundary(|| {
        let info = SizedOut::new(info, "info")?;
        info.write(describe(&*handles::get(function)?));
        Ok(())
    })
}

/// The type of an argument: kDLOpaqueHandle for a buffer, else a scalar's.
///
/// @param function  the function.
/// @param index     0 up to DlhalFunctionInfo::num_args.
/// @param type      gets the type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_function_get_arg_type(
    function: DlhalFunction,
    index: usize,
    r#type: *mut DLDataType,
) -> DlhalStatus {
    boundary(|| {
        let target = Out::new(r#type, "type")?;
        let function = handles::get(function)?;
        let types = &function.info().signature.arg_types;
        let dtype = types.get(index).ok_or_else(|| out_of_range(index, types.len()))?;
        target.write(dltensor::to_dl_dtype(*dtype));
        Ok(())
    })
}

/// A launch tag, for example `blockIdx.x`: what the launch extent at its place means.
///
/// @param function  the function.
/// @param index     0 up to DlhalFunctionInfo::num_tags.
/// @param buffer, capacity, needed  get the tag.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_function_get_launch_tag(
    function: DlhalFunction,
    index: usize,
    buffer: *mut c_char,
    capacity: usize,
    needed: *mut usize,
) -> DlhalStatus {
    boundary(|| {
        let buffer = Buffer::text(buffer, capacity, needed)?;
        let function = handles::get(function)?;
        let tags: Vec<_> = launch_tags(&function).collect();
        buffer.write_text(tags.get(index).ok_or_else(|| out_of_range(index, tags.len()))?)
    })
}

/// Frees a function, without waiting: launches of it are finished.
///
/// @param function  the function; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_function_free(function: DlhalFunction) -> DlhalStatus {
    boundary(|| handles::remove(function).map(drop))
}

/// Launches a function on a device, in stream order.
///
/// @param function        the function.
/// @param device          a kDLVulkan device.
/// @param stream          the stream.
/// @param args, num_args  the function's arguments, then one launch extent (an integer) per launch
///                        tag. Buffers are DLHAL_VALUE_HANDLE or DLHAL_VALUE_TENSOR; numbers are
///                        converted to what the kernel declares, and refused when that would lose
///                        value. An extent of 0 launches nothing. The values are read before the
///                        call returns.
/// @return DLHAL_STATUS_INVALID_ARGUMENT with the argument's index and what was expected;
///         DLHAL_STATUS_NOT_FOUND for an address in no live allocation of the device;
///         DLHAL_STATUS_UNSUPPORTED for a kernel that needs more than the device has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_function_launch(
    function: DlhalFunction,
    device: DLDevice,
    stream: DlhalStream,
    args: *const DlhalValue,
    num_args: usize,
) -> DlhalStatus {
    boundary(|| {
        let args = args::slice(args, num_args, "args")?;
        let function = handles::get(function)?;
        let stream = objects::stream_on(device, stream)?;
        let args = args.iter().map(|arg| values::from_c(arg, stream.device()));
        runtime::launch(&function, args, &stream)
    })
}

/// Prepares a launch that is to run many times: its arguments are checked and converted once.
///
/// @param function        the function; it may be freed before the launch.
/// @param device          a kDLVulkan device.
/// @param args, num_args  as for dlhal_function_launch(). Memory that they name may be freed and
///                        allocated anew; it is looked up at each run.
/// @param launch          gets the launch. Free it with dlhal_launch_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_launch_create(
    function: DlhalFunction,
    device: DLDevice,
    args: *const DlhalValue,
    num_args: usize,
    launch: *mut DlhalLaunch,
) -> DlhalStatus {
    boundary(|| {
        let launch = Out::new(launch, "launch")?;
        let args = args::slice(args, num_args, "args")?;
        let function = handles::get(function)?;
        let device = objects::device(device)?;
        let args = args.iter().map(|arg| values::from_c(arg, &device));
        let prepared = Launch::new(&function, &device, args)?;
        launch.write(handles::insert(Arc::new(Mutex::new(prepared)))?);
        Ok(())
    })
}

/// Replaces one argument or launch extent of a prepared launch. Runs started before keep the old
/// one.
///
/// @param launch  the launch.
/// @param index   the value's place in the arguments of dlhal_launch_create().
/// @param value   the new value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_launch_set_arg(
    launch: DlhalLaunch,
    index: usize,
    value: *const DlhalValue,
) -> DlhalStatus {
    boundary(|| {
        let value = args::reference(value, "value")?;
        let launch = handles::get(launch)?;
        let mut launch = launch.lock();
        objects::check_open(launch.device())?;
        let value = values::from_c(value, launch.device())
            .map_err(|error| error.within(format_args!("argument {index}")))?;
        launch.set_arg(index, value)
    })
}

/// Runs a prepared launch, in stream order.
///
/// @param launch  the launch.
/// @param stream  a stream of the launch's device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_launch_run(launch: DlhalLaunch, stream: DlhalStream) -> DlhalStatus {
    boundary(|| {
        let launch = handles::get(launch)?;
        let launch = launch.lock();
        objects::check_open(launch.device())?;
        launch.run(&*objects::stream(launch.device(), stream)?)
    })
}

/// Frees a prepared launch, without waiting.
///
/// @param launch  the launch; null is legal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlhal_launch_free(launch: DlhalLaunch) -> DlhalStatus {
    boundary(|| handles::remove(launch).map(drop))
}

fn describe(function: &Function) -> DlhalFunctionInfo {
    let info = function.info();
    DlhalFunctionInfo {
        struct_size: 0,
        num_args: info.args.len(),
        num_tags: launch_tags(function).count(),
        num_launch_args: function.launch_arg_count(),
        local_size: info.local_size(),
        workgroup_memory_bytes: u32::try_from(info.workgroup_bytes()).unwrap_or(u32::MAX),
        scalar_bytes: info.scalars.size(),
        scalars_in_uniform_buffer: u32::from(matches!(info.scalars, ScalarBlock::Uniform { .. })),
    }
}

/// The tags that take an extent, as the module spells them.
fn launch_tags(function: &Function) -> impl Iterator<Item = &str> {
    let info = function.info();
    let tags = info.launch_tags.iter().zip(&info.signature.launch_tags);
    tags.filter(|(tag, _)| tag.takes_argument()).map(|(_, spelled)| spelled.as_str())
}

fn out_of_range(index: usize, count: usize) -> Error {
    Error::invalid(format!("index {index}: there are {count}"))
}
