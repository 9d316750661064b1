"""TVM's device API on a Vulkan device: what tensors, streams and attributes do."""

import numpy as np
import pytest
import tvm
import tvm.runtime as rt

DTYPES = [
    "float32",
    "float16",
    "float64",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint64",
    "bool",
]


def property_of(dev, name):
    return tvm.get_global_func("device_api.vulkan.get_target_property")(dev, name)


def numbers(rng, shape, dtype):
    return (rng.standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (4097,), (2, 0, 3)])
def test_tensors_keep_their_numbers(dev, rng, dtype, shape):
    host = np.asarray(numbers(rng, shape, dtype))
    tensor = rt.tensor(host, dev)
    assert tensor.shape == shape and str(tensor.dtype) == dtype
    np.testing.assert_array_equal(tensor.numpy(), host)


def test_copies_between_tensors(dev, rng):
    host = numbers(rng, (1000,), "float32")
    first, second = rt.tensor(host, dev), rt.empty((1000,), "float32", dev)
    first.copyto(second)
    np.testing.assert_array_equal(second.numpy(), host)
    second.copyfrom(host[::-1])
    np.testing.assert_array_equal(second.numpy(), host[::-1])


def test_freed_tensors_give_their_memory_back(dev):
    # The rounds together need more than the device has.
    for _ in range(dev.total_global_memory // (1 << 30) + 2):
        tensor = rt.empty((1 << 30,), "uint8", dev)
        del tensor
    dev.sync()


def test_views_with_an_offset(dev, rng):
    host = numbers(rng, (64, 32), "float32")
    tensor = rt.tensor(host, dev)
    # A view's data lies behind its tensor's by an offset that the device follows.
    row = tensor._create_view((4, 32), "float32", relative_byte_offset=10 * 32 * 4)
    np.testing.assert_array_equal(row.numpy(), host[10:14])
    row.copyfrom(np.zeros((4, 32), "float32"))
    host[10:14] = 0
    np.testing.assert_array_equal(tensor.numpy(), host)
    inner = row._create_view((32,), "float32", relative_byte_offset=2 * 32 * 4)
    inner.copyfrom(np.ones(32, "float32"))
    host[12] = 1
    np.testing.assert_array_equal(tensor.numpy(), host)


def test_streams_are_ordered(dev, rng):
    host = numbers(rng, (1 << 16,), "float32")
    stream = dev.create_raw_stream()
    try:
        dev.set_raw_stream(stream)
        tensor = rt.tensor(host, dev)
        other = rt.empty(tensor.shape, "float32", dev)
        tensor.copyto(other)
        dev.set_raw_stream(0)
        # The default stream was never told to wait for the other one.
        np.testing.assert_array_equal(other.numpy(), host)
        dev.sync(stream)
    finally:
        dev.set_raw_stream(0)
        dev.free_raw_stream(stream)


def test_attributes(dev):
    assert dev.exist and not tvm.vulkan(1000).exist
    assert dev.max_threads_per_block >= 128 and dev.warp_size >= 1
    assert dev.max_shared_memory_per_block >= 16384
    assert isinstance(dev.device_name, str) and dev.device_name
    assert len(dev.max_thread_dimensions) == 3
    assert isinstance(dev.compute_version, str)
    assert dev.total_global_memory >= 1 << 28
    # What Vulkan cannot know is not guessed.
    assert dev.max_clock_rate is None


def test_target_properties_are_those_of_the_device(dev):
    kinds = {
        "supports_float32": bool, "supports_float16": bool, "supports_int64": bool,
        "supports_8bit_buffer": bool, "supports_push_descriptor": bool,
        "supports_dedicated_allocation": bool, "supports_cooperative_matrix": bool,
        "supported_subgroup_operations": int, "max_num_threads": int, "thread_warp_size": int,
        "max_block_size_x": int, "max_push_constants_size": int, "max_storage_buffer_range": int,
        "max_shared_memory_per_block": int, "device_name": str, "device_type": str,
        "driver_name": str, "driver_version": int, "vulkan_api_version": int,
        "max_spirv_version": int,
    }  # fmt: skip
    for name, kind in kinds.items():
        assert isinstance(property_of(dev, name), kind), name
    assert property_of(dev, "max_num_threads") == dev.max_threads_per_block
    assert property_of(dev, "device_name") == dev.device_name
    assert property_of(dev, "no_such_property") is None
    with pytest.raises(ValueError, match="1000"):
        property_of(tvm.vulkan(1000), "device_name")


def test_target_detection_fills_every_property(dev):
    if tvm._RUNTIME_ONLY:
        pytest.skip("needs TVM's compiler")
    for detected in (tvm.target.Target.from_device(dev), tvm.target.Target.from_device("vulkan")):
        for name in tvm.target.TargetKind.options_from_name("vulkan"):
            if (value := property_of(dev, name)) is not None:
                assert detected.attrs[name] == value, name
        assert detected.attrs["max_threads_per_block"] == dev.max_threads_per_block
    by_option = tvm.target.Target({"kind": "vulkan", "from_device": dev.index})
    assert by_option.attrs["device_name"] == dev.device_name


def test_failures_are_exceptions_that_say_why(dev):
    with pytest.raises(MemoryError, match=str(1 << 50)):
        rt.empty((1 << 50,), "uint8", dev)
    with pytest.raises(ValueError, match="1000"):
        rt.empty((1,), "uint8", tvm.vulkan(1000))
    with pytest.raises(RuntimeError, match="texture"):
        rt.empty((1,), "uint8", dev, mem_scope="texture")
    # And the device works on.
    assert rt.tensor(np.ones(3, "float32"), dev).numpy().sum() == 3


def test_pinned_memory_by_its_scope(dev, rng):
    host = numbers(rng, (100,), "float32")
    tensor = rt.empty((100,), "float32", dev, mem_scope="host")
    tensor.copyfrom(host)
    np.testing.assert_array_equal(tensor.numpy(), host)


def aligned(host):
    """The same numbers where TVM takes them by DLPack: at a multiple of 64 bytes."""
    room = np.empty(host.nbytes + 64, "uint8")
    start = -room.ctypes.data % 64
    copy = room[start : start + host.nbytes].view(host.dtype).reshape(host.shape)
    copy[...] = host
    return copy


def test_numpy_arrays_come_in_by_dlpack(dev, rng):
    host = aligned(numbers(rng, (33, 16), "float32"))
    tensor = rt.empty(host.shape, "float32", dev)
    rt.from_dlpack(host).copyto(tensor)
    np.testing.assert_array_equal(tensor.numpy(), host)


def test_torch_tensors_come_in_by_dlpack(dev):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    host = torch.randn(33, 16)
    tensor = rt.empty(tuple(host.shape), "float32", dev)
    rt.from_dlpack(host).copyto(tensor)
    np.testing.assert_array_equal(tensor.numpy(), host.numpy())
    # Rows from the middle, which start behind their storage's first byte.
    part = rt.empty((10, 16), "float32", dev)
    rt.from_dlpack(host[5:15]).copyto(part)
    np.testing.assert_array_equal(part.numpy(), host[5:15].numpy())
    back = torch.from_dlpack(part.copyto(tvm.cpu()))
    assert torch.equal(back, host[5:15])
