"""What a target says its device can do. What it does not say, the device is asked at load."""

from .errors import refuse

# Which target attribute speaks of a capability.
_ATTRIBUTES = {
    "Float16": "supports_float16",
    "Float64": "supports_float64",
    "Int8": "supports_int8",
    "Int16": "supports_int16",
    "Int64": "supports_int64",
    "StorageBuffer8BitAccess": "supports_8bit_buffer",
    "StorageBuffer16BitAccess": "supports_16bit_buffer",
}

# Every device of Vulkan takes as many bytes of push constants.
_MIN_PUSH_CONSTANTS = 128

# A grid no longer than this in x runs on every device as it is.
MIN_GRID_LIMIT = 65535


class Device:
    """The attributes of a target of kind `vulkan`."""

    def __init__(self, target):
        self._attributes = dict(target.attrs)

    def _number(self, name):
        value = self._attributes.get(name)
        return None if value is None else int(value)

    def check(self, capability, what):
        """Refuses `what` where the target says that the device lacks what it needs."""
        attribute = _ATTRIBUTES.get(capability)
        if attribute is not None and self._number(attribute) == 0:
            refuse(
                f"{what} needs the capability {capability}, but the target has {attribute}=false",
                "use another type, or a target made from the device that runs it",
            )

    @property
    def push_constant_bytes(self):
        return self._number("max_push_constants_size") or _MIN_PUSH_CONSTANTS

    def check_workgroup(self, size):
        """The threads of a workgroup against the target's limits."""
        threads = size[0] * size[1] * size[2]
        names = ("max_num_threads", "max_threads_per_block")
        limits = [(self._number(name), name) for name in names if self._number(name)]
        # Each has a default, so that the greater is the one that was set.
        limit, name = max(limits, default=(threads, ""))
        if threads > limit:
            refuse(
                f"its workgroup has {size[0]} x {size[1]} x {size[2]} = {threads} threads, the "
                f"target allows {limit} ({name})",
                "schedule smaller blocks, or raise the limit if the device has it",
            )
        for axis, extent in zip("xyz", size):
            name = f"max_block_size_{axis}"
            limit = self._number(name)
            if limit and extent > limit:
                refuse(
                    f"threadIdx.{axis} is {extent}, the target allows {limit} ({name})",
                    f"bind fewer threads to threadIdx.{axis}",
                )

    def check_workgroup_memory(self, used):
        limit = self._number("max_shared_memory_per_block")
        if limit and used > limit:
            refuse(
                f"it uses {used} bytes of workgroup memory, the target allows {limit} "
                "(max_shared_memory_per_block)",
                "schedule smaller tiles, or raise the limit if the device has it",
            )

    def check_buffers(self, count):
        name = "max_per_stage_descriptor_storage_buffer"
        limit = self._number(name)
        if limit and count > limit:
            refuse(
                f"it has {count} buffers, the target allows {limit} ({name})",
                "fuse fewer operators into one kernel",
            )
