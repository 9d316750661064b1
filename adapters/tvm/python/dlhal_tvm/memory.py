"""Buffers of a kernel: arguments, workgroup memory and arrays of one thread."""

from . import ir
from .builder import Value
from .dtypes import BOOL, UINT32, DType
from .errors import refuse

# An array of one thread this large can only be meant for global memory.
_MAX_ARRAY_BYTES = 1 << 20


class _Argument:
    """A buffer argument: a variable for each type by which the kernel reads it."""

    def __init__(self, name, binding):
        self.name = name
        self.binding = binding
        self.variables = {}
        self.written = False


class _Array:
    """Workgroup memory, or the memory of one thread."""

    def __init__(self, name, storage_class, dtype, variable):
        self.name = name
        self.storage_class = storage_class
        self.dtype = dtype
        self.variable = variable
        self.written = True


class Memory:
    """Finds the memory behind TVM's buffers, and loads and stores."""

    def __init__(self, builder):
        self._builder = builder
        self._writer = builder.writer
        self._places = {}
        self._arguments = []
        self._blocks = {}
        self.workgroup_bytes = 0

    def argument(self, variable):
        """Takes the next binding for a pointer parameter."""
        argument = _Argument(str(variable.name), len(self._arguments))
        self._arguments.append(argument)
        self._places[ir.key(variable)] = argument

    @property
    def argument_count(self):
        return len(self._arguments)

    def alias(self, buffer, declared):
        """Makes `buffer` another name of memory that is known."""
        if declared is None:
            refuse_pointer(buffer.name)
        place = self._places.get(declared)
        if place is not None:
            self._places[ir.buffer_key(buffer)] = place

    def allocate(self, buffer, bounds):
        """An array in workgroup memory or in that of one thread; `bounds` of each dimension."""
        name, scope = str(buffer.name), ir.buffer_scope(buffer)
        dtype = ir.buffer_dtype(buffer)
        count = 1
        for bound in bounds:
            if bound is None:
                refuse(
                    f"the size of `{name}` in scope {scope} is not known at compile time",
                    "give it a constant shape, or one with a constant upper bound",
                )
            count *= bound
        family = scope.split(".")[0]
        if family == "shared":
            place = self._workgroup_array(name, dtype, count)
        elif family in ("local", "warp") and scope == "local":
            place = self._local_array(name, dtype, count)
        else:
            refuse(
                f"`{name}` is allocated in scope `{scope}`, which Vulkan kernels do not have",
                "use the scope shared or local, or pass the buffer as an argument",
            )
        self._places[ir.buffer_key(buffer)] = place

    def _workgroup_array(self, name, dtype, count):
        chunk = _chunk(dtype)
        lane = self._lane_type(dtype, "Workgroup")
        self.workgroup_bytes += max(count, 1) * dtype.lanes * max(dtype.memory_bytes, 1)
        variable = self._array("Workgroup", lane, chunk, count * dtype.lanes // chunk)
        self._writer.name(variable, name)
        return _Array(name, "Workgroup", dtype, variable)

    def _local_array(self, name, dtype, count):
        if count * dtype.lanes * dtype.memory_bytes > _MAX_ARRAY_BYTES:
            refuse(
                f"`{name}` has {count} elements of {dtype} in the memory of each thread",
                "allocate it as an argument in global memory",
            )
        lane = self._lane_type(dtype, "Function")
        variable = self._array("Function", lane, 1, count * dtype.lanes)
        self._writer.name(variable, name)
        return _Array(name, "Function", dtype, variable)

    def _array(self, storage_class, lane, chunk, count):
        element = self._element(lane, chunk)
        length = self._builder.u32(max(count, 1)).id
        array = self._writer.once("TypeArray", element, length)
        if storage_class == "Function":
            return self._writer.local_variable(array)
        return self._writer.global_variable(storage_class, array)

    def load(self, buffer, index) -> Value:
        """The elements at each lane of `index`."""
        place, dtype = self._place(buffer)
        values = [self._load_element(place, dtype, at) for at in self._at(index, dtype)]
        return values[0] if len(values) == 1 else self._builder.join(values)

    def store(self, buffer, index, value):
        place, dtype = self._place(buffer)
        place.written = True
        if value.dtype.scalar != dtype.scalar:
            refuse(
                f"a value of {value.dtype} is stored to `{place.name}`, which holds {dtype}",
                "cast it to the buffer's type",
            )
        value = self._builder.widen(value)
        lanes = dtype.lanes
        for number, at in enumerate(self._at(index, dtype)):
            part = value.lanes[number * lanes : (number + 1) * lanes]
            self._store_element(place, dtype, at, Value(dtype, part))

    def _place(self, buffer):
        place = self._places.get(ir.buffer_key(buffer))
        if place is None:
            refuse(
                f"`{buffer.name}` is neither an argument nor allocated in the kernel",
                "pass it as an argument",
            )
        dtype = ir.buffer_dtype(buffer)
        if isinstance(place, _Array) and place.dtype != dtype:
            refuse(
                f"`{place.name}` in the kernel's own memory holds {place.dtype} and is read as "
                f"{dtype}",
                "use one type for it, the scope shared for arrays that TVM merges in shared.dyn, "
                "or a buffer in global memory",
            )
        return place, dtype

    def _at(self, index, dtype):
        """Each lane of an index, in 32 bits where that cannot change it.

        A buffer has fewer than 4 GiB, so an index of elements of two bytes and more fits.
        """
        if dtype.memory_bytes * dtype.lanes >= 2:
            index = self._builder.low(index)
        return [self._builder.lane(index, lane) for lane in range(len(index.lanes))]

    # Elements.

    def _load_element(self, place, dtype, at):
        storage_class, variable = self._variable(place, dtype)
        chunk = 1 if storage_class == "Function" else _chunk(dtype)
        lane = self._lane_type(dtype, storage_class)
        small = _is_small(dtype, storage_class)
        held = self._builder.type(UINT32) if small else lane
        lanes = []
        for part in range(dtype.lanes // chunk):
            pointer = self._pointer(storage_class, variable, lane, chunk, at, dtype, part)
            loaded = self._writer.value("Load", self._element(lane, chunk), pointer)
            if small:
                # Small integers, alone or in vectors, can be converted but not taken apart.
                op = "SConvert" if dtype.kind == "i" else "UConvert"
                loaded = self._writer.value(op, self._element(held, chunk), loaded)
            if chunk == 1:
                lanes.append(loaded)
            else:
                lanes += [
                    self._writer.value("CompositeExtract", held, loaded, k) for k in range(chunk)
                ]
        return Value(dtype, tuple(self._from_memory(x, dtype, small) for x in lanes))

    def _store_element(self, place, dtype, at, value):
        storage_class, variable = self._variable(place, dtype)
        chunk = 1 if storage_class == "Function" else _chunk(dtype)
        lane = self._lane_type(dtype, storage_class)
        small = _is_small(dtype, storage_class)
        held = self._builder.type(UINT32) if small else lane
        lanes = [self._to_memory(x, dtype, small) for x in value.lanes]
        for part in range(dtype.lanes // chunk):
            pointer = self._pointer(storage_class, variable, lane, chunk, at, dtype, part)
            what = lanes[part]
            if chunk > 1:
                parts = lanes[part * chunk : (part + 1) * chunk]
                what = self._writer.value("CompositeConstruct", self._element(held, chunk), *parts)
            if small:
                what = self._writer.value("UConvert", self._element(lane, chunk), what)
            self._writer.effect("Store", pointer, what)

    def _element(self, lane, chunk):
        return lane if chunk == 1 else self._writer.once("TypeVector", lane, chunk)

    def _pointer(self, storage_class, variable, lane, chunk, at, dtype, part):
        builder = self._builder
        parts = dtype.lanes // chunk
        if parts > 1:
            scale = builder.constant(at.dtype, parts, at.narrow)
            at = builder.add(builder.mul(at, scale), builder.constant(at.dtype, part, at.narrow))
        element = self._element(lane, chunk)
        pointer = self._writer.pointer(storage_class, element)
        first = (builder.u32(0).id,) if storage_class == "StorageBuffer" else ()
        return self._writer.value("AccessChain", pointer, variable, *first, at.id)

    def _variable(self, place, dtype):
        if isinstance(place, _Array):
            return place.storage_class, place.variable
        lane = self._lane_type(dtype, "StorageBuffer")
        chunk = _chunk(dtype)
        element = self._element(lane, chunk)
        if element not in place.variables:
            stride = chunk * dtype.memory_bytes
            place.variables[element] = self._buffer_variable(place, element, stride)
        return "StorageBuffer", place.variables[element]

    def _buffer_variable(self, place, element, stride):
        if element not in self._blocks:
            array = self._writer.declare("TypeRuntimeArray", element)
            self._writer.decorate(array, "ArrayStride", stride)
            block = self._writer.declare("TypeStruct", array)
            self._writer.decorate(block, "Block")
            self._writer.decorate_member(block, 0, "Offset", 0)
            self._blocks[element] = block
        variable = self._writer.global_variable("StorageBuffer", self._blocks[element])
        self._writer.name(variable, place.name)
        self._writer.decorate(variable, "DescriptorSet", 0)
        self._writer.decorate(variable, "Binding", place.binding)
        return variable

    def decorate(self):
        """Says of each argument what the whole kernel does with it."""
        for argument in self._arguments:
            for variable in argument.variables.values():
                if not argument.written:
                    self._writer.decorate(variable, "NonWritable")
                if len(argument.variables) > 1:
                    self._writer.decorate(variable, "Aliased")

    # A lane in memory.

    def _lane_type(self, dtype: DType, storage_class):
        builder = self._builder
        if storage_class == "StorageBuffer":
            bits = dtype.memory_bytes * 8
            if bits < 32:
                builder.need(f"StorageBuffer{bits}BitAccess", f"a buffer of {dtype}")
        elif storage_class == "Function" or dtype.kind == "b":
            return builder.type(dtype)
        else:
            bits = dtype.bits
            if dtype.is_int and bits < 32:
                builder.need(f"Int{bits}", f"workgroup memory of {dtype}")
        if dtype.kind == "f":
            if bits == 64 or storage_class != "StorageBuffer":
                return builder.type(dtype)
            return self._writer.once("TypeFloat", bits)
        if bits == 64:
            return builder.type(dtype)
        return self._writer.once("TypeInt", bits, 0)

    def _from_memory(self, lane, dtype, small):
        builder = self._builder
        if dtype.kind == "b" and small:
            return builder.compare("ne", Value(UINT32, (lane,)), builder.u32(0)).id
        if dtype.kind == "f" and dtype.bits == 16:
            builder.type(dtype)
        return lane

    def _to_memory(self, lane, dtype, small):
        builder = self._builder
        if dtype.kind == "b" and small:
            return builder.select(Value(BOOL, (lane,)), builder.u32(1), builder.u32(0)).id
        return lane


def _is_small(dtype, storage_class):
    """Whether memory holds fewer bits of an integer or a truth value than the kernel does."""
    if storage_class == "Function" or (dtype.kind == "b" and storage_class == "Workgroup"):
        return False
    return dtype.kind != "f" and dtype.memory_bytes < 4


def refuse_pointer(name):
    refuse(f"the pointer `{name}` is computed in the kernel", "index the buffer instead")


def _chunk(dtype):
    """How many lanes are one vector in memory."""
    return next(size for size in (4, 2, 1) if dtype.lanes % size == 0)
