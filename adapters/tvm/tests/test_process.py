"""How the package behaves in a process: loading, choosing who serves, threads, ends."""

import os
import shutil
from pathlib import Path

import dlhal_tvm
import pytest
import tvm
from conftest import MODULES, run_python

USE = f"""
import numpy as np, tvm, tvm.runtime as rt
dev = tvm.vulkan(0)
load = tvm.get_global_func("ffi.Module.load_from_bytes.vulkan")
module = load(open({str(MODULES / "v0.6.1/demo.bin")!r}, "rb").read())
saxpy = module["saxpy"]
x = rt.tensor(np.ones(4096, "float32"), dev)
y = rt.tensor(np.ones(4096, "float32"), dev)
stream = dev.create_raw_stream()
tvm.get_global_func("__tvm_set_device")(7, 0)
"""
LAUNCH = "saxpy(x, y, 2.0, 4096, 64, 64)\n"
CHECK = "assert (y.numpy() == 3).all()\nprint('right')\n"
STATUS = "import tvm, dlhal_tvm\nprint(dlhal_tvm.serving())\n"


def test_it_loads_by_itself():
    assert run_python(STATUS) == "dlhal\n"
    assert run_python(USE + LAUNCH + CHECK) == "right\n"


def test_it_serves_where_only_the_runtime_is_loaded():
    only_runtime = {"TVM_USE_RUNTIME_LIB": "1"}
    code = USE + LAUNCH + CHECK + "assert tvm._RUNTIME_ONLY\n"
    assert run_python(code, only_runtime) == "right\n"


def test_it_can_be_kept_out():
    assert run_python(STATUS, {"DLHAL_TVM": "off"}) == "none\n"
    assert run_python(STATUS, {"TVM_DEVICE_BACKEND_AUTOLOAD": "0"}) == "none\n"
    assert "DLHAL_TVM=off" in run_python(
        "import tvm, dlhal_tvm; print(dlhal_tvm.diagnose())", {"DLHAL_TVM": "off"}
    )


def test_a_wrong_choice_is_a_warning_that_names_the_choices():
    code = "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n    import tvm\nprint(caught[-1].message)"
    said = run_python(code, {"DLHAL_TVM": "perhaps"})
    assert "perhaps" in said and "auto, on, off" in said


OWN = """
import tvm_ffi
# A TVM that was built with Vulkan has registered these by the time that extensions are loaded.
tvm_ffi.register_global_func("device_api.vulkan", lambda: None)
tvm_ffi.register_global_func("device_api.vulkan.get_target_property", lambda dev, name: None)
"""


def test_a_tvm_with_vulkan_of_its_own_keeps_it_unless_told_otherwise():
    diagnose = "import tvm, dlhal_tvm\nprint(dlhal_tvm.serving())\nprint(dlhal_tvm.diagnose())\n"
    said = run_python(OWN + diagnose)
    assert said.startswith("tvm\n") and "DLHAL_TVM=on" in said
    assert run_python(OWN + diagnose, {"DLHAL_TVM": "on"}).startswith("dlhal\n")
    assert run_python(OWN + USE + LAUNCH + CHECK, {"DLHAL_TVM": "on"}) == "right\n"


def test_the_package_can_be_imported_without_tvm(tmp_path):
    # An interpreter that sees this package alone.
    package = Path(dlhal_tvm.__file__).resolve().parent
    shutil.copytree(package, tmp_path / "dlhal_tvm", ignore=shutil.ignore_patterns("*.so*"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import dlhal_tvm; print(dlhal_tvm.library_path())"
    flags = {"PYTHONNOUSERSITE": "1"}
    said = run_python(
        f"import subprocess, sys; print(subprocess.run([sys.executable, '-S', '-c', {code!r}], text=True, capture_output=True, check=True).stdout)",
        flags,
    )
    assert str(tmp_path) in said


def test_it_is_a_drop_in_beside_the_runtime(tmp_path):
    # A copy of TVM's package with the plugin where its own would be; ours stays away.
    shutil.copytree(
        Path(tvm.__file__).resolve().parent,
        tmp_path / "tvm",
        copy_function=os.link
        if os.stat(tvm.__file__).st_dev == tmp_path.stat().st_dev
        else shutil.copy,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for library in Path(dlhal_tvm.library_path()).parent.iterdir():
        shutil.copy(library, tmp_path / "tvm" / "lib" / library.name)
    code = (
        USE
        + LAUNCH
        + CHECK
        + f"assert {str(tmp_path)!r} + '/tvm/lib/libtvm_runtime_vulkan.so' in open('/proc/self/maps').read()"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert run_python(code, {"PYTHONPATH": paths, "DLHAL_TVM": "off"}) == "right\n"


@pytest.mark.parametrize(
    "end",
    [
        "",
        LAUNCH,
        LAUNCH * 100,
        LAUNCH + "import sys; sys.exit(0)",
        LAUNCH + "import os; os._exit(0)",
        LAUNCH + "import atexit; atexit.register(lambda: (x.numpy(), globals().clear()))",
        LAUNCH + "keep = []; keep.append((keep, x, y, module, saxpy))",
    ],
)
def test_interpreters_end_well_with_everything_alive(end):
    assert run_python(USE + end) == ""


def test_no_device_is_no_failure():
    nothing = {"VK_DRIVER_FILES": "/nonexistent.json", "DLHAL_VISIBLE_DEVICES": ""}
    code = "import tvm; print(tvm.vulkan(0).exist, tvm.cpu().exist)"
    assert run_python(code, nothing) == "False True\n"


def test_threads_work_side_by_side():
    code = (
        USE
        + """
import threading
wrong = []
def work(seed):
    rng = np.random.default_rng(seed)
    tvm.get_global_func("__tvm_set_device")(7, 0)
    for _ in range(100):
        n = int(rng.integers(1, 5000))
        a, b = (rng.standard_normal(n).astype("float32") for _ in range(2))
        da, db = rt.tensor(a, dev), rt.tensor(b, dev)
        saxpy(da, db, 2.0, n, (n + 63) // 64, 64)
        if not np.allclose(db.numpy(), 2 * a + b, rtol=1e-5, atol=1e-5):
            wrong.append((seed, n))
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not wrong, wrong
print("right")
"""
    )
    assert run_python(code) == "right\n"


needs_two_drivers = pytest.mark.skipif(
    "DLHAL_TEST_SOFTWARE_DRIVER_2" not in os.environ, reason="no second driver file"
)


def two_drivers():
    names = (f"DLHAL_TEST_SOFTWARE_DRIVER{n}" for n in ("", "_2"))
    return {"VK_DRIVER_FILES": ":".join(os.environ[name] for name in names)}


@needs_two_drivers
def test_two_devices():
    code = (
        USE
        + """
second = tvm.vulkan(1)
assert second.exist and not tvm.vulkan(2).exist
dx, dy = x.copyto(second), y.copyto(second)
tvm.get_global_func("__tvm_set_device")(7, 1)
saxpy(dx, dy, 2.0, 4096, 64, 64)
assert (dy.numpy() == 3).all() and (y.numpy() == 1).all()
dy.copyto(y)
"""
        + CHECK
    )
    assert run_python(code, two_drivers()) == "right\n"


@needs_two_drivers
def test_each_thread_chooses_its_device_and_keeps_it():
    code = (
        USE
        + """
import threading
choose = tvm.get_global_func("__tvm_set_device")
second = tvm.vulkan(1)
dx, dy = x.copyto(second), y.copyto(second)

def refused(launch):
    try:
        launch()
    except Exception as error:
        return str(error)
    raise AssertionError("nothing was refused")

# A device that does not exist is refused, as often as it is asked for, and changes nothing.
for _ in range(2):
    choose(7, 1)
    assert "9" in refused(lambda: choose(7, 9))
    assert "1" in refused(lambda: choose(7, -1))
    saxpy(dx, dy, 1.0, 4096, 64, 64)
assert "the launch on vulkan:1" in refused(lambda: saxpy(x, y, 1.0, 4096, 64, 64))
# Another thread begins with the first device, whatever this one has chosen.
def other():
    saxpy(x, y, 1.0, 4096, 64, 64)
    choose(7, 1)
    saxpy(dx, dy, 1.0, 4096, 64, 64)
    second.sync()
    choose(7, 0)
    saxpy(x, y, 1.0, 4096, 64, 64)
    dev.sync()
thread = threading.Thread(target=other)
thread.start()
thread.join()
saxpy(dx, dy, 1.0, 4096, 64, 64)
assert (y.numpy() == 3).all() and (dy.numpy() == 5).all()
"""
        + CHECK
    )
    assert run_python(code, two_drivers()) == "right\n"
