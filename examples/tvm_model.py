"""Compiles a small model for Vulkan with the stock TVM wheel, runs it, and checks it."""

import math
import time

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn


class Model(nn.Module):
    def __init__(self):
        self.up, self.down = nn.Linear(256, 512), nn.Linear(512, 10)

    def forward(self, x):
        return nn.op.softmax(self.down(nn.op.gelu(self.up(x))), axis=-1)


mod, weights = Model().export_tvm({"forward": {"x": nn.spec.Tensor(["n", 256], "float32")}})

dev = tvm.vulkan()
target = tvm.target.Target.from_device(dev)
vm = relax.VirtualMachine(tvm.compile(mod, target=target), dev)

rng = np.random.default_rng(0)
numbers = [rng.standard_normal(w.shape).astype("float32") / 16 for _, w in weights]
params = [tvm.runtime.tensor(n, dev) for n in numbers]
x = rng.standard_normal((64, 256)).astype("float32")
y = vm["forward"](tvm.runtime.tensor(x, dev), *params).numpy()


# The same model in NumPy, in double precision.
def reference(x):
    up_weight, up_bias, down_weight, down_bias = (n.astype("float64") for n in numbers)
    h = x @ up_weight.T + up_bias
    h = h * 0.5 * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
    z = np.exp(h @ down_weight.T + down_bias)
    return z / z.sum(-1, keepdims=True)


error = np.abs(y - reference(x)).max()
on_device = tvm.runtime.tensor(x, dev)
start = time.perf_counter()
for _ in range(100):
    y = vm["forward"](on_device, *params)
dev.sync()
each = (time.perf_counter() - start) / 100
print(f"device: {dev.device_name}")
print(f"largest error: {error:.1e}")
print(f"time: {each * 1e6:.0f} us a run")
assert error < 1e-5, "the model's result is wrong"
