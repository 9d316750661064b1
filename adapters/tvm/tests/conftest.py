"""What the tests of the TVM package share. They run against the installed wheel, whatever TVM is
beside it, and any message of Vulkan's validation layers fails the test that made it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm

MODULES = Path(__file__).resolve().parents[3] / "tests" / "data" / "modules"
COMPLAINT = re.compile(r"VUID-|SYNC-HAZARD|UNASSIGNED-|Validation Error")


@pytest.fixture(autouse=True)
def silent_validation(capfd):
    yield
    out, err = capfd.readouterr()
    complaint = COMPLAINT.search(out + err)
    sys.stdout.write(out)
    sys.stderr.write(err)
    assert complaint is None, "the validation layer complains"


@pytest.fixture(scope="session")
def dev():
    device = tvm.vulkan(0)
    assert device.exist, tvm.get_global_func("dlhal.diagnose")()
    return device


@pytest.fixture(scope="session")
def target(dev):
    return tvm.target.Target.from_device(dev)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def run_python(code, environment=None, args=(), expect=0):
    """What a fresh interpreter prints that runs `code`; it must end with status `expect`, print
    nothing on standard error, and please the validation layer."""
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(environment or {})},
    )
    report = f"status {result.returncode}\n{result.stdout}\n{result.stderr}"
    assert result.returncode == expect, report
    assert not COMPLAINT.search(result.stdout + result.stderr), report
    if expect == 0:
        assert result.stderr == "", report
    return result.stdout
