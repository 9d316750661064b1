//! Kernel modules as pure data: file formats, signatures, shaders. Nothing here knows a device.
