"""What cannot be compiled right is refused, in one sentence that says what to do."""

import pytest
import tvm
from codegen_support import scheduled
from tvm import te, tirx
from tvm.script import tirx as T

if tvm._RUNTIME_ONLY:
    pytest.skip("needs TVM's compiler", allow_module_level=True)


def vulkan(**attributes):
    return tvm.target.Target({"kind": "vulkan", **attributes})


def refused(mod, target, *parts):
    with pytest.raises(Exception) as caught:
        tvm.compile(mod, target=target)
    message = str(caught.value)
    assert message.startswith("kernel `main_kernel`: "), message
    assert "\n" not in message and ";" in message, message
    for part in parts:
        assert part in message, message


def copy_of(dtype, function=lambda x: x):
    a = te.placeholder((64,), dtype, "a")
    return scheduled(te.compute((64,), lambda i: function(a[i]), "b"), a)


@pytest.mark.parametrize(
    "dtype, attribute",
    [
        ("float16", "supports_16bit_buffer"),
        ("float16", "supports_float16"),
        ("float64", "supports_float64"),
        ("int64", "supports_int64"),
        ("int8", "supports_8bit_buffer"),
    ],
)
def test_a_type_that_the_target_lacks(dtype, attribute):
    mod = copy_of(dtype, lambda x: x + x)
    refused(mod, vulkan(**{attribute: False}), dtype, f"{attribute}=false", "use another type")


def test_an_intrinsic_that_no_device_has():
    mod = copy_of("float32", lambda x: tirx.call_pure_extern("float32", "j0f", x))
    refused(mod, vulkan(), "`j0f` of float32", "express it by functions that are")


def test_a_float64_function():
    refused(copy_of("float64", tirx.exp), vulkan(), "`exp` of float64", "cast its argument")


def test_nextafter_of_float16():
    mod = copy_of("float16", lambda x: tirx.nextafter(x, x))
    refused(mod, vulkan(), "`nextafter` of float16", "float32")


def test_a_workgroup_of_more_threads_than_the_target_allows():
    a = te.placeholder((4096,), "float32", "a")
    mod = scheduled(te.compute((4096,), lambda i: a[i], "b"), a, threads=512)
    refused(mod, vulkan(), "512 x 1 x 1 = 512 threads", "the target allows 256")
    refused(mod, vulkan(max_threads_per_block=1024, max_block_size_x=128), "threadIdx.x is 512",
            "allows 128 (max_block_size_x)")  # fmt: skip
    tvm.compile(mod, target=vulkan(max_num_threads=512))


def test_more_workgroup_memory_than_the_target_allows():
    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((64,), "float32")):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_buffer((64,), "float32", scope="shared")
            s[i] = a[i]
            a[i] = s[63 - i]

    mod = tvm.IRModule({"main": main})
    limit = vulkan(max_shared_memory_per_block=128)
    refused(mod, limit, "256 bytes of workgroup memory", "allows 128")
    tvm.compile(mod, target=vulkan(max_shared_memory_per_block=256))


def test_more_buffers_than_the_target_allows():
    inputs = [te.placeholder((64,), "float32", f"a{k}") for k in range(6)]
    mod = scheduled(te.compute((64,), lambda i: sum(a[i] for a in inputs), "b"), *inputs)
    refused(mod, vulkan(max_per_stage_descriptor_storage_buffer=4), "7 buffers", "allows 4")


def test_a_type_that_vulkan_does_not_have():
    a = te.placeholder((64,), "int4", "a")
    mod = scheduled(te.compute((64,), lambda i: a[i] + a[i], "b"), a)
    refused(mod, vulkan(), "int4", "cast them to")


SWAP = "        {array}[t] = a[t]\n        a[t] = {array}[31 - t]\n"
INTRINSICS = [
    (
        "        a[t] = T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), a[t], 3, 32, 32)\n",
        ("`tvm_warp_shuffle` of uint32, float32", "a target with thread_warp_size=1"),
    ),
    (
        '        T.evaluate(T.call_extern("int32", "atomicAdd", T.address_of(n[0]), 1))\n',
        ("`atomicAdd` of pointers", "let one thread write each element"),
    ),
    (
        '        n[t] = T.Cast("int32", T.tvm_warp_activemask())\n',
        ("`tvm_warp_activemask` of nothing", "a target with thread_warp_size=1"),
    ),
]
MEMORY = [
    (
        '        s = T.alloc_buffer((32,), "float32", scope="shared.dyn")\n'
        '        r = T.alloc_buffer((32,), "int32", scope="shared.dyn")\n'
        "        s[t] = a[t]\n        r[t] = n[t]\n"
        "        a[t] = s[31 - t]\n        n[t] = r[31 - t]\n",
        ("holds uint8 and is read as", "the scope shared for arrays that TVM merges in shared.dyn"),
    ),
    (
        '        s = T.alloc_buffer((32,), "float32", scope="warp")\n' + SWAP.format(array="s"),
        ("in scope `warp`", "use the scope shared or local"),
    ),
    (
        '        s = T.alloc_buffer((32,), "float32", scope="global")\n' + SWAP.format(array="s"),
        ("in scope `global`", "pass the buffer as an argument"),
    ),
    (
        '        T.evaluate(T.tvm_storage_sync("global"))\n',
        ("in scope `global` reaches beyond a workgroup", "split the kernel"),
    ),
    (
        '        p: T.let[T.handle("float32")] = T.address_of(a[8])\n'
        '        c = T.decl_buffer((16,), "float32", data=p)\n'
        "        a[t] = c[T.floormod(t, 16)]\n",
        ("is computed in the kernel", "index the buffer instead"),
    ),
]


def script(body):
    text = "@T.prim_func(s_tir=True)\n"
    text += 'def main(a: T.Buffer((64,), "float32"), n: T.Buffer((64,), "int32")):\n'
    text += '    for t in T.thread_binding(32, thread="threadIdx.x"):\n' + body
    return tvm.IRModule({"main": tvm.script.from_source(text)})


@pytest.mark.parametrize("body, parts", INTRINSICS)
def test_what_is_done_by_intrinsics_that_vulkan_does_not_have(body, parts):
    refused(script(body), vulkan(), *parts)


@pytest.mark.parametrize("body, parts", MEMORY)
def test_memory_that_vulkan_kernels_do_not_have(body, parts):
    refused(script(body), vulkan(), *parts)


@pytest.mark.parametrize("pointer", ["T.address_of(a[8])", "T.handle_add_byte_offset(a.data, 64)"])
def test_a_buffer_at_a_computed_pointer(pointer):
    body = f'        c = T.decl_buffer((16,), "float32", data={pointer})\n'
    body += "        a[t] = c[T.floormod(t, 16)]\n"
    try:
        mod = script(body)
    except tvm.error.DiagnosticError:
        pytest.skip("buffers have variables for pointers before TVM 0.26")
    refused(mod, vulkan(), "`c` is computed in the kernel", "index the buffer instead")


def test_an_access_with_a_mask():
    masked = [
        ("        a.vstore([T.Ramp(t, 1, 4)], T.Broadcast(T.float32(1), 4), predicate={mask})\n",
         "that to `a` has a mask"),
        ("        a[t] = T.Shuffle([a.vload([T.Ramp(t, 1, 4)], predicate={mask})], [0])\n",
         "that from `a` has a mask"),
    ]  # fmt: skip
    for body, part in masked:
        try:
            mod = script(body.format(mask="T.Broadcast(n[t] > 0, 4)"))
        except tvm.error.DiagnosticError:
            pytest.skip("accesses have no masks from TVM 0.26 on")
        refused(mod, vulkan(), part, "without a predicate")
