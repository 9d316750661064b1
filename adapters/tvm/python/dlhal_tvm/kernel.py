"""One kernel of TVM's IR as SPIR-V: parameters, threads, statements."""

from typing import NamedTuple

from . import ir, module_bytes
from .builder import Builder, Value
from .device import MIN_GRID_LIMIT
from .dtypes import FLOAT16, INT32, UINT32
from .errors import refuse
from .expressions import Expressions
from .memory import Memory, refuse_pointer
from .ranges import INT32_MAX, INT32_MIN, Ranges
from .spirv import BUILT_IN, Writer

# The shader's flags: the scalars are in a uniform buffer.
UNIFORM_SCALARS = 1

# Bytes from one scalar to the next, whatever their types.
_SCALAR_STRIDE = 8

# What float16 needs there.
_HALVES = {
    "PushConstant": "StoragePushConstant16",
    "Uniform": "UniformAndStorageBuffer16BitAccess",
}

# What the launcher looks for: a grid (x, y, 1) may be launched as (⌈x/k⌉, y, k).
GRID_FOLD_MARK = "dlhal.grid_fold x z"

_LOOP_UNROLL = 1
_UNROLLED_KIND = 3

_SEMANTICS_ACQUIRE_RELEASE = 0x8
_SEMANTICS_UNIFORM_MEMORY = 0x40
_SEMANTICS_WORKGROUP_MEMORY = 0x100
_SCOPE_WORKGROUP = 2

# Calls that some releases have in the place of statements.
_EXITS = {"thread_return": "on_Return", "ret": "on_Return", "break_loop": "on_Break",
          "continue_loop": "on_Continue"}  # fmt: skip

# Attributes whose meaning goes beyond a hint to schedules.
_REFUSED_ATTRIBUTES = ("virtual_thread", "async_scope", "async_commit_queue_scope",
                       "async_wait_queue_scope", "fragment_shape", "fragment_layout")  # fmt: skip


class Shader(NamedTuple):
    """A kernel compiled: its SPIR-V, its flags, and the types of its arguments."""

    spirv: bytes
    flags: int
    arg_types: list


def compile_kernel(function, name, device) -> Shader:
    """Compiles a function that TVM has split from the host, for the target of `device`."""
    return _Kernel(device).compile(function, name)


class _Kernel:
    def __init__(self, device):
        self.device = device
        self.writer = Writer()
        self.b = Builder(self.writer, device)
        self.ranges = Ranges()
        self.memory = Memory(self.b)
        self.expressions = Expressions(self.b, self.ranges, self.memory)
        self.flags = 0
        self.arg_types = []
        self.grid = {}
        # Of each loop around the statement: where it ends, where it goes on, and whether all
        # threads go through it together.
        self.loops = []
        self.reducing = False
        # Conditions around the statement that may differ from thread to thread.
        self.conditions = 0
        self.local_size = [1, 1, 1]

    def compile(self, function, name):
        self.b.open = True
        self.block_here()
        self.collect_threads(function.body)
        self.parameters(function.params)
        self.read_indices()
        self.statement(function.body)
        if self.b.open:
            self.writer.effect("Return")
        self.memory.decorate()
        self.device.check_workgroup(self.local_size)
        self.device.check_workgroup_memory(self.memory.workgroup_bytes)
        self.device.check_buffers(self.memory.argument_count)
        spirv = self.writer.finish(name, self.local_size)
        return Shader(spirv, self.flags, self.arg_types)

    # Parameters.

    def parameters(self, params):
        scalars = []
        for param in params:
            if ir.pointer(param) is not None:
                self.memory.argument(param)
                self.arg_types.append(module_bytes.argument_type(None))
            else:
                scalars.append(param)
                self.arg_types.append(module_bytes.argument_type(ir.dtype(param)))
        if not scalars:
            return
        members = [self.member_type(param) for param in scalars]
        block = self.writer.declare("TypeStruct", *members)
        self.writer.decorate(block, "Block")
        for index in range(len(members)):
            self.writer.decorate_member(block, index, "Offset", index * _SCALAR_STRIDE)
        if len(members) * _SCALAR_STRIDE <= self.device.push_constant_bytes:
            storage_class = "PushConstant"
            variable = self.writer.global_variable(storage_class, block)
        else:
            storage_class = "Uniform"
            self.flags |= UNIFORM_SCALARS
            variable = self.writer.global_variable(storage_class, block)
            self.writer.decorate(variable, "DescriptorSet", 0)
            self.writer.decorate(variable, "Binding", self.memory.argument_count)
        self.writer.name(variable, "scalars")
        if FLOAT16 in map(ir.dtype, scalars):
            self.b.need(_HALVES[storage_class], "a scalar of float16")
        for index, (param, member) in enumerate(zip(scalars, members)):
            pointer = self.writer.pointer(storage_class, member)
            at = self.writer.value("AccessChain", pointer, variable, self.b.u32(index).id)
            loaded = self.writer.value("Load", member, at)
            self.expressions.bind(param, self.scalar(param, loaded))

    def member_type(self, param):
        """The type of a scalar in the block; small integers and truth values take 32 bits."""
        dtype = ir.dtype(param)
        if dtype.kind == "b":
            return self.b.type(UINT32)
        return self.b.type(dtype)

    def scalar(self, param, loaded):
        dtype = ir.dtype(param)
        if dtype.kind == "b":
            return self.b.compare("ne", Value(UINT32, (loaded,)), self.b.u32(0))
        return Value(dtype, (loaded,))

    # Threads.

    def collect_threads(self, statement):
        """The extents of the grid and of the workgroup, before anything is written."""
        for node in _nested(statement):
            if ir.kind(node) != "AttrStmt" or node.attr_key != "thread_extent":
                continue
            tag = str(node.node.thread_tag)
            axis = _axis(tag)
            extent = node.value.value if ir.kind(node.value) == "IntImm" else None
            if tag.startswith("threadIdx."):
                if extent is None:
                    refuse(
                        f"the extent of {tag} is `{node.value}`, which is not constant",
                        "bind a loop of constant extent to it",
                    )
                self.local_size[axis] = extent
            elif tag.startswith("blockIdx."):
                self.grid[axis] = extent
            else:
                refuse(
                    f"a loop is bound to `{tag}`",
                    "bind it to blockIdx or threadIdx, in x, y or z",
                )

    @property
    def folds(self):
        """Whether the grid's x may be over what a device takes and z is free to take it up."""
        x = self.grid.get(0, 1)
        return 2 not in self.grid and (x is None or x > MIN_GRID_LIMIT)

    def read_indices(self):
        self.thread = self.built_in("LocalInvocationId")
        self.group = self.built_in("WorkgroupId")
        if self.folds:
            self.writer.processed(GRID_FOLD_MARK)
            layer = self.b.mul(self.group[2], self.built_in("NumWorkgroups")[0])
            self.group[0] = self.b.add(layer, self.group[0])

    def built_in(self, name):
        uint = self.b.type(UINT32)
        vector = self.writer.once("TypeVector", uint, 3)
        variable = self.writer.global_variable("Input", vector)
        self.writer.decorate(variable, "BuiltIn", BUILT_IN[name])
        loaded = self.writer.value("Load", vector, variable)
        parts = [self.writer.value("CompositeExtract", uint, loaded, axis) for axis in range(3)]
        return [Value(INT32, (part,)) for part in parts]

    def bind_thread(self, node):
        tag, variable = str(node.node.thread_tag), node.node.var
        axis = _axis(tag)
        threads = tag.startswith("threadIdx.")
        extent = self.local_size[axis] if threads else self.grid[axis]
        high = INT32_MAX if extent is None else max(extent - 1, 0)
        self.ranges.bind(variable, 0, high)
        index = (self.thread if threads else self.group)[axis]
        self.expressions.bind(variable, self.b.cast(index, ir.dtype(variable)))
        if not threads and axis == 0 and self.folds:
            self.leave_beyond(variable, node.value)

    def leave_beyond(self, variable, extent):
        """Ends the workgroups that a folded grid has too many of."""
        index = self.expressions.value(variable)
        end = self.b.cast(self.expressions.value(extent), index.dtype)
        beyond, within = self.writer.new_id(), self.writer.new_id()
        self.b.fork(self.b.compare("ge", index, end), beyond, within, within)
        self.b.label(beyond)
        self.writer.effect("Return")
        self.b.label(within)

    # Statements.

    def statement(self, node):
        handler = getattr(self, "on_" + ir.kind(node), None)
        if handler is None:
            refuse(
                f"a statement of kind {ir.kind(node)} has no counterpart in Vulkan",
                "lower it before the code is generated",
            )
        handler(node)

    def on_SeqStmt(self, node):
        for part in node.seq:
            if not self.b.open:
                return
            self.statement(part)

    def on_AttrStmt(self, node):
        if node.attr_key == "thread_extent":
            self.bind_thread(node)
        elif str(node.attr_key) in _REFUSED_ATTRIBUTES:
            refuse(
                f"the attribute `{node.attr_key}` is not for Vulkan kernels",
                "leave out the schedule's step that adds it",
            )
        # Reductions over threads have every barrier that they need.
        outer, self.reducing = self.reducing, self.reducing or node.attr_key == "reduce_scope"
        self.statement(node.body)
        self.reducing = outer

    def on_Bind(self, node):
        if ir.pointer(node.var) is not None:
            refuse_pointer(node.var.name)
        self.ranges.bind(node.var, *self.ranges.of(node.value))
        self.expressions.bind(node.var, self.expressions.value(node.value))

    def on_LetStmt(self, node):
        self.on_Bind(node)
        self.statement(node.body)

    def on_Evaluate(self, node):
        operator = ir.operator(node.value)
        if operator is None:
            if ir.kind(node.value) != "IntImm":
                self.expressions.value(node.value)
            return
        name, operands = operator
        if name == "tvm_storage_sync":
            self.barrier(str(operands[0].value))
        elif name in _EXITS:
            getattr(self, _EXITS[name])(node)
        elif name in ("assume", "prefetch", "tvm_kill"):
            return
        else:
            self.expressions.value(node.value)

    def barrier(self, scope):
        if scope == "warp" and self.conditions > 0:
            refuse(
                "threads of a warp are synchronised under a condition other than an `if` of plain "
                "statements",
                "use a target with thread_warp_size=1",
            )
        if scope != "warp" and scope.split(".")[0] != "shared":
            refuse(
                f"a synchronisation in scope `{scope}` reaches beyond a workgroup",
                "split the kernel where the workgroups must wait for one another",
            )
        # What the workgroup's threads wrote to buffers is seen by one another, too.
        semantics = (
            _SEMANTICS_ACQUIRE_RELEASE | _SEMANTICS_WORKGROUP_MEMORY | _SEMANTICS_UNIFORM_MEMORY
        )
        ids = [self.b.u32(word).id for word in (_SCOPE_WORKGROUP, _SCOPE_WORKGROUP, semantics)]
        self.writer.effect("ControlBarrier", *ids)

    def on_BufferStore(self, node):
        _no_predicate(node)
        index = self.expressions.index(node)
        value = self.expressions.value(node.value)
        self.memory.store(node.buffer, index, value)

    def on_AllocBuffer(self, node):
        bounds = []
        for extent in ir.buffer_shape(node.buffer):
            high = self.ranges.of(extent)[1]
            bounds.append(high if high < INT32_MAX else None)
        self.memory.allocate(node.buffer, bounds)

    def on_DeclBuffer(self, node):
        self.memory.alias(node.buffer, ir.declared_key(node))

    def on_AssertStmt(self, node):
        """Nothing: a kernel has nobody to tell."""

    def on_IfThenElse(self, node):
        condition = self.expressions.value(node.condition)
        if self.conditions == 0 and node.else_case is None and _is_stepwise(node.then_case):
            self.in_steps(condition, node.then_case)
            return
        exchange = self.exchange(node)
        if exchange is not None:
            self.read_then_write(condition, *exchange)
            return
        then, other, merge = (self.writer.new_id() for _ in range(3))
        self.b.fork(condition, then, other if node.else_case is not None else merge, merge)
        self.conditions += 1
        self.b.label(then)
        self.statement(node.then_case)
        self.b.branch(merge)
        if node.else_case is not None:
            self.b.label(other)
            self.statement(node.else_case)
            self.b.branch(merge)
        self.conditions -= 1
        self.b.label(merge)

    def in_steps(self, condition, body):
        """Statements under a condition, with barriers of a warp between them.

        TVM takes threads of a warp to be neighbours in threadIdx, which Vulkan does not promise of
        a subgroup. So the workgroup waits in the warp's place, and for that no thread may be
        left out: each step has the condition of its own.
        """
        for step in _steps(body):
            then, merge = self.writer.new_id(), self.writer.new_id()
            before = self.block_here()
            self.b.fork(condition, then, merge, merge)
            self.b.label(then)
            for node in step:
                self.statement(node)
            end = self.b.block
            self.b.branch(merge)
            self.b.label(merge)
            for node in step:
                if ir.kind(node) == "Bind":
                    self.keep(node.var, end, before)
            self.barrier("warp")

    def keep(self, variable, then, before):
        """Makes a variable known after the condition under which it was bound."""
        value = self.expressions.value(variable)
        self.expressions.bind(variable, self.kept(value, then, before))

    def kept(self, value, then, before):
        """A value of the block `then`, in the block where it and `before` meet."""
        none = self.b.constant(value.dtype, 0, value.narrow)
        type_id = self.b.type(value.dtype, value.narrow)
        lanes = tuple(
            self.writer.value("Phi", type_id, lane, then, zero, before)
            for lane, zero in zip(value.lanes, none.lanes)
        )
        return value._replace(lanes=lanes)

    def exchange(self, node):
        """(bindings, store) of an `if` in which threads write what others may be reading: workgroup
        memory at one index from the same memory at another. None of any other `if`.

        TVM's scans are so written, for warps of 32 threads in step.
        """
        if self.conditions > 0 or self.reducing or node.else_case is not None:
            return None
        body = node.then_case
        statements = list(body.seq) if ir.kind(body) == "SeqStmt" else [body]
        *bindings, store = statements
        if ir.kind(store) != "BufferStore" or any(ir.kind(x) != "Bind" for x in bindings):
            return None
        if not all(uniform for _, _, uniform in self.loops):
            return None
        if ir.buffer_scope(store.buffer).split(".")[0] != "shared":
            return None
        place = ir.buffer_key(store.buffer)
        if not self.expressions.reads_elsewhere(store.value, place, store.indices[0]):
            return None
        return bindings, store

    def read_then_write(self, condition, bindings, store):
        """The reads of all threads, then the writes of all."""
        _no_predicate(store)
        then, merge = self.writer.new_id(), self.writer.new_id()
        before = self.block_here()
        self.b.fork(condition, then, merge, merge)
        self.b.label(then)
        for binding in bindings:
            self.statement(binding)
        index, value = self.expressions.index(store), self.expressions.value(store.value)
        end = self.b.block
        self.b.branch(merge)
        self.b.label(merge)
        index, value = self.kept(index, end, before), self.kept(value, end, before)
        self.barrier("shared")
        write, done = self.writer.new_id(), self.writer.new_id()
        self.b.fork(condition, write, done, done)
        self.b.label(write)
        self.memory.store(store.buffer, index, value)
        self.b.branch(done)
        self.b.label(done)

    def on_For(self, node):
        variable = node.loop_var
        low, high = self.ranges.of(node.min)
        extent_low, extent_high = self.ranges.of(node.extent)
        step = getattr(node, "step", None)
        self.ranges.bind(variable, low, max(high + extent_high - 1, low))
        # One more than the last value must be held, too, and each step beyond it.
        step_high = 1 if step is None else self.ranges.of(step)[1]
        beyond = high + max(extent_high - 1, 0) + step_high
        narrow = ir.dtype(variable).bits == 64 and INT32_MIN <= low and beyond <= INT32_MAX
        begin = self.loop_value(node.min, variable, narrow)
        # Where it ends is held in as few bits only if that is not far below where it begins.
        no_turns = narrow and low + extent_low < INT32_MIN
        extent = self.loop_value(node.extent, variable, narrow, at_least_0=no_turns)
        end = self.b.add(begin, extent)
        if step is None:
            stride = self.b.constant(ir.dtype(variable), 1, narrow)
        else:
            stride = self.loop_value(step, variable, narrow)
        before = self.block_here()
        head, test, body, after, done = (self.writer.new_id() for _ in range(5))
        self.b.branch(head)
        self.b.label(head)
        type_id = self.b.type(ir.dtype(variable), narrow)
        following = self.writer.new_id()
        phi = self.writer.value("Phi", type_id, begin.id, before, following, after)
        index = Value(ir.dtype(variable), (phi,), narrow)
        control = _LOOP_UNROLL if int(node.kind) == _UNROLLED_KIND else 0
        self.writer.effect("LoopMerge", done, after, control)
        self.b.branch(test)
        self.b.label(test)
        goes_on = self.b.compare("lt", index, end)
        self.writer.effect("BranchConditional", goes_on.id, body, done)
        self.b.label(body)
        self.expressions.bind(variable, self.as_known(variable, index))
        constant = ir.kind(node.min) == "IntImm" and ir.kind(node.extent) == "IntImm"
        self.loops.append((done, after, constant and not _leaves(node.body)))
        self.statement(node.body)
        self.loops.pop()
        self.b.branch(after)
        self.b.label(after)
        self.writer.named("IAdd", type_id, following, index.id, stride.id)
        self.b.branch(head)
        self.b.label(done)

    def as_known(self, variable, index):
        """A counter of 64 bits in 32 where the variable's range says that it fits."""
        fits = ir.dtype(variable).bits == 64 and self.ranges.fits_int32(variable)
        return self.b.low(index) if fits else index

    def loop_value(self, node, variable, narrow, at_least_0=False):
        value = self.b.cast(self.expressions.value(node), ir.dtype(variable))
        if at_least_0:
            value = self.b.maximum(value, self.b.constant(value.dtype, 0, value.narrow))
        return self.b.low(value) if narrow else self.b.widen(value)

    def block_here(self):
        """A block of its own, so that a phi can name where it comes from."""
        here = self.writer.new_id()
        self.b.branch(here)
        self.b.label(here)
        return here

    def on_While(self, node):
        head, test, body, after, done = (self.writer.new_id() for _ in range(5))
        self.b.branch(head)
        self.b.label(head)
        self.writer.effect("LoopMerge", done, after, 0)
        self.b.branch(test)
        self.b.label(test)
        condition = self.expressions.value(node.condition)
        self.writer.effect("BranchConditional", condition.id, body, done)
        self.b.label(body)
        self.loops.append((done, after, False))
        self.statement(node.body)
        self.loops.pop()
        self.b.branch(after)
        self.b.label(after)
        self.b.branch(head)
        self.b.label(done)

    def on_Break(self, node):
        self.b.branch(self.loops[-1][0])

    def on_Continue(self, node):
        self.b.branch(self.loops[-1][1])

    def on_Return(self, node):
        self.writer.effect("Return")
        self.b.open = False


def _axis(tag):
    return {"x": 0, "y": 1, "z": 2}.get(tag.rpartition(".")[2], 0)


def _no_predicate(node):
    if getattr(node, "predicate", None) is not None:
        refuse(
            f"Predicated buffer store is not supported: that to `{ir.buffer_of(node).name}` has a mask",
            "schedule the loop without a predicate",
        )


def _leaves(body):
    """Whether a thread may leave the loop on its own."""
    return any(
        ir.kind(node) in ("Break", "Continue", "Return", "While") or _called(node) in _EXITS
        for node in _nested(body)
    )


def _called(node):
    """The name of the operator that the statement calls for its effect, or None."""
    operator = ir.operator(node.value) if ir.kind(node) == "Evaluate" else None
    return None if operator is None else operator[0]


def _is_warp_barrier(node):
    return _called(node) == "tvm_storage_sync" and str(node.value.args[0].value) == "warp"


def _is_stepwise(body):
    """Whether the statements are plain and have barriers of a warp between them."""
    if ir.kind(body) != "SeqStmt" or not any(map(_is_warp_barrier, body.seq)):
        return False
    return all(
        ir.kind(node) in ("Bind", "BufferStore") or _is_warp_barrier(node) for node in body.seq
    )


def _steps(body):
    """The statements between the barriers."""
    step = []
    for node in body.seq:
        if not _is_warp_barrier(node):
            step.append(node)
        elif step:
            yield step
            step = []
    if step:
        yield step


def _nested(statement):
    """The statement and all in it."""
    stack = [statement]
    while stack:
        node = stack.pop()
        yield node
        kind = ir.kind(node)
        if kind == "SeqStmt":
            stack.extend(node.seq)
        elif kind == "IfThenElse":
            stack.append(node.then_case)
            if node.else_case is not None:
                stack.append(node.else_case)
        elif hasattr(node, "body"):
            stack.append(node.body)
