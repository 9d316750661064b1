//! A tensor as a caller describes it: checked once, borrowed for the length of a call.

use std::fmt;

use crate::module::DataType;
use crate::{Error, Result};

/// The most dimensions that are taken.
pub const MAX_NDIM: usize = 64;

/// A device as DLPack names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRef {
    /// DLPack's device type.
    pub device_type: i32,
    /// Its index among the devices of that type.
    pub device_id: i32,
}

impl DeviceRef {
    /// `kDLCPU`.
    pub const CPU: i32 = 1;
    /// `kDLVulkan`.
    pub const VULKAN: i32 = 7;

    /// The host.
    pub const fn cpu() -> Self {
        Self { device_type: Self::CPU, device_id: 0 }
    }

    /// The Vulkan device at `device_id`.
    pub const fn vulkan(device_id: i32) -> Self {
        Self { device_type: Self::VULKAN, device_id }
    }

    /// Whether this is the host.
    pub const fn is_cpu(self) -> bool {
        self.device_type == Self::CPU
    }

    /// Refuses numbers that DLPack does not know and negative indices.
    fn check(self) -> Result<Self> {
        if device_type_name(self.device_type).is_some() && self.device_id >= 0 {
            return Ok(self);
        }
        Err(self.refusal())
    }

    #[cold]
    fn refusal(self) -> Error {
        let Self { device_type, device_id } = self;
        Error::invalid(match device_type_name(device_type) {
            Some(_) => format!("device_id {device_id} is negative"),
            None => format!(
                "device_type {device_type} is unknown: kDLCPU (1) and kDLVulkan (7) are supported"
            ),
        })
    }
}

impl fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match device_type_name(self.device_type) {
            Some(name) => write!(f, "{name}:{}", self.device_id),
            None => write!(f, "device_type {}:{}", self.device_type, self.device_id),
        }
    }
}

/// A tensor's description, checked: nothing in it overflows, every extent is non-negative, and the
/// type is one whose size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorView<'a> {
    /// Where the data is.
    pub device: DeviceRef,
    /// The data pointer: an address of the device's address space, or of the host.
    pub data: u64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
    /// Extents, outermost first.
    pub shape: &'a [i64],
    /// Strides in elements, one per extent; `None` for compact row-major.
    pub strides: Option<&'a [i64]>,
    /// The element type.
    pub dtype: DataType,
    layout: Layout,
}

/// What a description comes to in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    elements: u64,
    /// Bytes of the elements side by side.
    nbytes: u64,
    is_contiguous: bool,
    /// The first and the one-past-last byte that an element touches, counted from the first
    /// element.
    span: (i64, i64),
}

impl<'a> TensorView<'a> {
    /// Checks a description. A null `data` is taken, for prototypes; see [`Self::require_data`].
    // Always inlined, as is what makes a part of it: a view is too large to be handed from call to
    // call, each time in pieces of another size, which the processor cannot forward.
    #[inline(always)]
    pub fn new(
        device: DeviceRef,
        data: u64,
        byte_offset: u64,
        shape: &'a [i64],
        strides: Option<&'a [i64]>,
        dtype: DataType,
    ) -> Result<Self> {
        let device = device.check()?;
        check_dtype(dtype)?;
        if shape.len() > MAX_NDIM {
            return Err(Error::invalid(format!("ndim {} is over {MAX_NDIM}", shape.len())));
        }
        if shape.iter().any(|&extent| extent < 0) {
            return Err(negative(shape));
        }
        if let Some(strides) = strides
            && strides.len() != shape.len()
        {
            return Err(Error::invalid(format!(
                "{} strides for {} dimensions",
                strides.len(),
                shape.len()
            )));
        }
        let layout = Layout::new(shape, strides, dtype)?;
        layout.check_place(data, byte_offset)?;
        Ok(Self { device, data, byte_offset, shape, strides, dtype, layout })
    }

    /// The same elements side by side at `data`, where they have room.
    pub(crate) fn compact_at(self, data: u64) -> Self {
        let layout = Layout::compact(self.layout.elements, self.layout.nbytes);
        Self { data, byte_offset: 0, strides: None, layout, ..self }
    }

    /// The same description of memory of another device.
    pub(crate) fn on(self, device: DeviceRef) -> Self {
        Self { device, ..self }
    }

    /// Refuses a null data pointer of a tensor that has bytes.
    pub fn require_data(&self) -> Result<()> {
        if self.data == 0 && self.nbytes() > 0 {
            return Err(Error::invalid(format!(
                "data is null, but the tensor has {} bytes",
                self.nbytes()
            )));
        }
        Ok(())
    }

    /// The address of the first element.
    pub fn address(&self) -> u64 {
        self.data + self.byte_offset
    }

    /// Elements.
    pub fn num_elements(&self) -> u64 {
        self.layout.elements
    }

    /// Bytes that the elements take when they stand side by side.
    pub fn nbytes(&self) -> u64 {
        self.layout.nbytes
    }

    /// Bytes of one element; `None` where elements do not end on byte boundaries.
    pub fn element_bytes(&self) -> Option<u64> {
        element_bytes(self.dtype)
    }

    /// Whether the elements stand side by side in row-major order.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous
    }

    /// The first and the one-past-last byte that an element touches, counted from
    /// [`Self::address`]; the first is negative where a stride is. Both are 0 without elements.
    pub fn span(&self) -> (i64, i64) {
        self.layout.span
    }
}

impl Layout {
    #[inline(always)]
    fn new(shape: &[i64], strides: Option<&[i64]>, dtype: DataType) -> Result<Self> {
        let elements = count(shape);
        let nbytes = elements.and_then(|n| packed_bytes(n, dtype)).filter(|&n| n <= MAX_BYTES);
        let (Some(elements), Some(nbytes)) = (elements, nbytes) else {
            return Err(too_large(shape, dtype));
        };
        match strides {
            Some(strides) if elements > 0 && !is_compact(shape, strides) => {
                let span = reach(shape, strides, dtype)?;
                Ok(Self { elements, nbytes, is_contiguous: false, span })
            }
            _ => Ok(Self::compact(elements, nbytes)),
        }
    }

    /// `nbytes` is at most [`MAX_BYTES`].
    #[inline(always)]
    fn compact(elements: u64, nbytes: u64) -> Self {
        Self { elements, nbytes, is_contiguous: true, span: (0, nbytes as i64) }
    }

    /// Refuses a place from which the elements leave the address space.
    #[inline]
    fn check_place(&self, data: u64, byte_offset: u64) -> Result<()> {
        // An offset from 2^63 on is a negative one that went through an unsigned type.
        let sum = data.checked_add(byte_offset).filter(|_| byte_offset <= MAX_BYTES);
        let stays = |start: u64| {
            let (first, end) = self.span;
            // A prototype's tensor starts at 0, so only a real address can be undercut.
            let above = start == 0 || start.checked_add_signed(first).is_some();
            above && start.checked_add_signed(end).is_some()
        };
        if sum.is_some_and(stays) { Ok(()) } else { Err(self.misplaced(data, byte_offset, sum)) }
    }

    #[cold]
    fn misplaced(&self, data: u64, byte_offset: u64, start: Option<u64>) -> Error {
        let (first, end) = self.span;
        Error::invalid(match start {
            None => format!("byte_offset {byte_offset}: data {data:#x} + byte_offset overflows"),
            Some(_) => format!(
                "byte_offset {byte_offset}: the {} bytes at data {data:#x} + byte_offset leave the \
                 address space (strides reach from {first} to {end})",
                self.nbytes
            ),
        })
    }
}

/// The elements of a shape; `None` for more than can be counted.
#[inline]
fn count(shape: &[i64]) -> Option<u64> {
    let (mut elements, mut overflows, mut is_empty) = (1u64, false, false);
    for &extent in shape {
        let (product, beyond) = elements.overflowing_mul(extent as u64);
        elements = product;
        overflows |= beyond;
        is_empty |= extent == 0;
    }
    if is_empty { Some(0) } else { (!overflows).then_some(elements) }
}

#[cold]
fn negative(shape: &[i64]) -> Error {
    let axis = shape.iter().position(|&extent| extent < 0).unwrap_or_default();
    Error::invalid(format!("shape[{axis}] is {}: negative", shape[axis]))
}

#[cold]
fn too_large(shape: &[i64], dtype: DataType) -> Error {
    Error::invalid(format!("shape {shape:?} of {dtype} has more bytes than an address can count"))
}

/// Whether strides say that the elements, of which there are some, stand side by side in row-major
/// order.
fn is_compact(shape: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1i64;
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        if extent != 1 && stride != expected {
            return false;
        }
        expected = expected.wrapping_mul(extent);
    }
    true
}

/// See [`Layout::span`].
fn reach(shape: &[i64], strides: &[i64], dtype: DataType) -> Result<(i64, i64)> {
    let element = element_bytes(dtype).ok_or_else(|| {
        Error::unsupported(format!(
            "strides of {dtype}: elements smaller than a byte are packed, and only compact tensors \
             of them are supported"
        ))
    })?;
    // `None` where a bound does not fit.
    let span = || {
        let bytes = i64::try_from(element).ok()?;
        let (mut first, mut last) = (0i64, 0i64);
        for (&extent, &stride) in shape.iter().zip(strides) {
            let reach = (extent - 1).checked_mul(stride)?.checked_mul(bytes)?;
            if reach < 0 {
                first = first.checked_add(reach)?;
            } else {
                last = last.checked_add(reach)?;
            }
        }
        Some((first, last.checked_add(bytes)?))
    };
    span().ok_or_else(|| {
        Error::invalid(format!(
            "strides {strides:?} with shape {shape:?} of {dtype} reach beyond the address space"
        ))
    })
}

/// More cannot be addressed, and less than this keeps every later sum from overflowing.
const MAX_BYTES: u64 = i64::MAX as u64;

/// Bits that an element takes in memory.
fn element_bits(dtype: DataType) -> u64 {
    // A one-bit unsigned integer is the older spelling of a truth value, which takes a byte.
    if dtype.is_bool() && dtype.lanes == 1 {
        return 8;
    }
    u64::from(dtype.bits) * u64::from(dtype.lanes)
}

fn element_bytes(dtype: DataType) -> Option<u64> {
    let bits = element_bits(dtype);
    bits.is_multiple_of(8).then_some(bits / 8)
}

fn packed_bytes(elements: u64, dtype: DataType) -> Option<u64> {
    elements.checked_mul(element_bits(dtype)).map(|bits| bits.div_ceil(8))
}

fn check_dtype(dtype: DataType) -> Result<()> {
    const LAST_CODE: u8 = 17;
    if dtype.code > LAST_CODE {
        return Err(Error::invalid(format!(
            "dtype.code {} is unknown: DLPack 1.3 ends at {LAST_CODE}",
            dtype.code
        )));
    }
    if !matches!(dtype.bits, 1 | 2 | 4 | 6 | 8 | 16 | 32 | 64 | 128) {
        return Err(Error::invalid(format!(
            "dtype.bits {} is not one of 1, 2, 4, 6, 8, 16, 32, 64, 128",
            dtype.bits
        )));
    }
    if !(dtype.lanes.is_power_of_two() || dtype.lanes == 3) {
        return Err(Error::invalid(format!(
            "dtype.lanes {} is neither 3 nor a power of two",
            dtype.lanes
        )));
    }
    Ok(())
}

/// DLPack's name of a device type, without its prefix.
fn device_type_name(device_type: i32) -> Option<&'static str> {
    Some(match device_type {
        1 => "cpu",
        2 => "cuda",
        3 => "cuda_host",
        4 => "opencl",
        7 => "vulkan",
        8 => "metal",
        9 => "vpi",
        10 => "rocm",
        11 => "rocm_host",
        12 => "ext_dev",
        13 => "cuda_managed",
        14 => "oneapi",
        15 => "webgpu",
        16 => "hexagon",
        17 => "maia",
        18 => "trn",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DlhalStatus;

    const F32: DataType = DataType::new(DataType::FLOAT, 32);

    fn view<'a>(shape: &'a [i64], strides: Option<&'a [i64]>, dtype: DataType) -> TensorView<'a> {
        TensorView::new(DeviceRef::vulkan(0), 0x1000, 0, shape, strides, dtype).unwrap()
    }

    fn refused(view: Result<TensorView<'_>>, word: &str) {
        let error = view.expect_err(word);
        assert_eq!(error.status(), DlhalStatus::InvalidArgument, "{error}");
        assert!(error.message().contains(word), "`{word}` is not in: {error}");
    }

    #[test]
    fn a_compact_tensor_counts_its_bytes() {
        let matrix = view(&[3, 5], None, F32);
        assert_eq!((matrix.num_elements(), matrix.nbytes(), matrix.span()), (15, 60, (0, 60)));
        assert!(matrix.is_contiguous());
    }

    #[test]
    fn rank_zero_is_one_element_and_a_zero_extent_is_none() {
        assert_eq!(view(&[], None, F32).nbytes(), 4);
        let empty = view(&[i64::MAX, 0, i64::MAX], None, F32);
        assert_eq!((empty.nbytes(), empty.span()), (0, (0, 0)));
    }

    #[test]
    fn strides_that_say_row_major_are_contiguous_whatever_stands_at_extent_one() {
        assert!(view(&[2, 1, 4], Some(&[4, 999, 1]), F32).is_contiguous());
        assert!(!view(&[2, 4], Some(&[1, 2]), F32).is_contiguous());
    }

    #[test]
    fn the_span_covers_negative_strides() {
        assert_eq!(view(&[4, 2], Some(&[-2, 1]), F32).span(), (-24, 8));
        assert_eq!(view(&[3], Some(&[10]), F32).span(), (0, 84));
        assert_eq!(view(&[3], Some(&[0]), F32).span(), (0, 4));
    }

    #[test]
    fn small_types_are_packed_and_truth_values_take_a_byte() {
        assert_eq!(view(&[5], None, DataType::new(DataType::INT, 4)).nbytes(), 3);
        assert_eq!(view(&[5], None, DataType::new(DataType::UINT, 1)).nbytes(), 5);
        assert_eq!(view(&[5], None, DataType::new(DataType::BOOL, 8)).nbytes(), 5);
        let float16x4 = DataType { lanes: 4, ..DataType::new(DataType::FLOAT, 16) };
        assert_eq!(view(&[5], None, float16x4).nbytes(), 40);
    }

    #[test]
    fn strided_packed_elements_are_unsupported() {
        let int4 = DataType::new(DataType::INT, 4);
        let view = TensorView::new(DeviceRef::cpu(), 64, 0, &[2, 2], Some(&[4, 1]), int4);
        assert_eq!(view.unwrap_err().status(), DlhalStatus::Unsupported);
    }

    #[test]
    fn what_overflows_is_refused_with_the_field_named() {
        let device = DeviceRef::vulkan(0);
        let new = |data, offset| TensorView::new(device, data, offset, &[16], None, F32);
        refused(new(0x1000, u64::MAX - 39), "byte_offset");
        refused(new(0x8000_0000_0000_0000, 1 << 63), "byte_offset");
        refused(new(u64::MAX - 40, 0), "byte_offset");
        refused(new(0x1000, 1 << 63), "byte_offset");
        refused(TensorView::new(device, 0, 0, &[1 << 40, 1 << 40], None, F32), "shape");
        refused(TensorView::new(device, 0, 0, &[1 << 61], None, F32), "shape");
        refused(TensorView::new(device, 64, 0, &[2, 2], Some(&[i64::MAX, 1]), F32), "strides");
        refused(TensorView::new(device, 64, 0, &[2, 2], Some(&[-100, 1]), F32), "strides");
        assert!(new(0x1000, (1 << 32) + 3).is_ok());
    }

    #[test]
    fn what_is_no_tensor_is_refused_with_the_field_named() {
        let new = |device, shape, dtype| TensorView::new(device, 64, 0, shape, None, dtype);
        let device = DeviceRef::vulkan(0);
        refused(new(device, &[2, -1], F32), "shape[1]");
        refused(new(device, &[1; 65], F32), "ndim");
        refused(new(device, &[1], DataType { lanes: 0, ..F32 }), "lanes");
        refused(new(device, &[1], DataType { lanes: 5, ..F32 }), "lanes");
        refused(new(device, &[1], DataType { bits: 3, ..F32 }), "bits");
        refused(new(device, &[1], DataType { bits: 0, ..F32 }), "bits");
        refused(new(device, &[1], DataType { code: 18, ..F32 }), "code");
        refused(new(DeviceRef { device_type: 99, device_id: 0 }, &[1], F32), "device_type");
        refused(new(DeviceRef::vulkan(-1), &[1], F32), "device_id");
        refused(TensorView::new(device, 64, 0, &[1], Some(&[]), F32), "strides");
    }

    #[test]
    fn null_data_is_legal_only_without_bytes() {
        let null = |shape| TensorView::new(DeviceRef::cpu(), 0, 0, shape, None, F32).unwrap();
        assert!(null(&[0]).require_data().is_ok());
        refused(null(&[1]).require_data().map(|()| null(&[1])), "data is null");
    }
}
