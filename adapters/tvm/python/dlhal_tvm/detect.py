"""Target detection: TVM's own fills some of the target's properties from the device, this all."""


def register() -> None:
    """Makes `Target.from_device` fill every property of a `vulkan` target."""
    from tvm.target.detect_target import register_device_target_detector

    register_device_target_detector("vulkan", target_of)


def target_of(dev):
    """The target that compiles for `dev`, with all that the device has and allows."""
    import tvm
    from tvm.target import Target, TargetKind

    get = tvm.get_global_func("device_api.vulkan.get_target_property")
    config = {"kind": "vulkan", "max_threads_per_block": dev.max_threads_per_block}
    for name in TargetKind.options_from_name("vulkan"):
        # None for options that are not the device's.
        if (value := get(dev, name)) is not None:
            config[name] = value
    return Target(config)
