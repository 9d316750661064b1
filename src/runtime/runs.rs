//! A tensor as runs of bytes: what lies side by side, in row-major order of the elements. Both
//! sides of a copy are walked in step, whatever their strides.

use smallvec::SmallVec;

use super::tensor::TensorView;
use crate::{Error, Result};

/// A walk over a tensor's bytes in row-major order.
pub(crate) struct Runs {
    /// Outer dimensions that do not belong to a run, outermost first.
    dims: SmallVec<[Dim; 2]>,
    /// Bytes of each run.
    run: u64,
    /// Bytes of the present run that were taken.
    taken: u64,
    /// Where the present run starts.
    offset: i64,
    left: u64,
}

struct Dim {
    extent: u64,
    /// Bytes from one index to the next.
    stride: i64,
    index: u64,
}

/// Bytes that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes from the tensor's first element; negative where a stride is.
    pub(crate) offset: i64,
    /// Bytes.
    pub(crate) size: u64,
}

impl Runs {
    /// The walk over `size` bytes that lie side by side.
    #[inline(always)]
    pub(crate) fn packed(size: u64) -> Self {
        Self { dims: SmallVec::new(), run: size, taken: 0, offset: 0, left: size }
    }

    /// The walk over `view`'s bytes.
    #[inline(always)]
    pub(crate) fn new(view: &TensorView<'_>) -> Result<Self> {
        match view.strides.filter(|_| !view.is_contiguous()) {
            Some(strides) => Self::strided(view, strides),
            None => Ok(Self::packed(view.nbytes())),
        }
    }

    fn strided(view: &TensorView<'_>, strides: &[i64]) -> Result<Self> {
        let mut runs = Self::packed(view.nbytes());
        let element = view.element_bytes().ok_or_else(|| {
            Error::unsupported(format!(
                "elements of {} do not end on byte boundaries, so only contiguous tensors of them \
                 can be copied; copy a contiguous one",
                view.dtype
            ))
        })?;
        runs.run = element;
        let mut inner = true;
        for (&extent, &stride) in view.shape.iter().zip(strides).rev() {
            // The stride of one element leads nowhere, and may be any number.
            if extent == 1 {
                continue;
            }
            let (extent, stride) = (extent as u64, stride * element as i64);
            if inner && u64::try_from(stride) == Ok(runs.run) {
                runs.run *= extent;
            } else {
                inner = false;
                runs.dims.insert(0, Dim { extent, stride, index: 0 });
            }
        }
        Ok(runs)
    }

    /// Whether all bytes lie side by side.
    pub(crate) fn is_packed(&self) -> bool {
        self.dims.is_empty()
    }

    /// Bytes not yet taken.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next bytes that lie side by side, at most `limit`; `None` at the end.
    pub(crate) fn take(&mut self, limit: u64) -> Option<Piece> {
        let size = (self.run - self.taken).min(limit).min(self.left);
        if size == 0 {
            return None;
        }
        let piece = Piece { offset: self.offset + self.taken as i64, size };
        self.left -= size;
        self.taken += size;
        if self.taken == self.run {
            self.taken = 0;
            self.next_run();
        }
        Some(piece)
    }

    fn next_run(&mut self) {
        for dim in self.dims.iter_mut().rev() {
            dim.index += 1;
            if dim.index < dim.extent {
                self.offset += dim.stride;
                return;
            }
            self.offset -= dim.stride * (dim.extent - 1) as i64;
            dim.index = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::DataType;
    use crate::runtime::tensor::DeviceRef;

    fn pieces(shape: &[i64], strides: Option<&[i64]>, limit: u64) -> Vec<(i64, u64)> {
        let dtype: DataType = "float32".parse().unwrap();
        let view = TensorView::new(DeviceRef::cpu(), 4096, 0, shape, strides, dtype).unwrap();
        let mut runs = Runs::new(&view).unwrap();
        std::iter::from_fn(|| runs.take(limit)).map(|p| (p.offset, p.size)).collect()
    }

    #[test]
    fn a_contiguous_tensor_is_one_run() {
        assert_eq!(pieces(&[2, 3, 4], None, u64::MAX), [(0, 96)]);
        assert_eq!(pieces(&[2, 3, 4], Some(&[12, 4, 1]), u64::MAX), [(0, 96)]);
        assert_eq!(pieces(&[], None, u64::MAX), [(0, 4)]);
    }

    #[test]
    fn a_tensor_without_elements_has_no_run() {
        assert_eq!(pieces(&[3, 0, 2], Some(&[7, 7, 7]), u64::MAX), []);
    }

    #[test]
    fn rows_of_a_wider_matrix_are_runs() {
        assert_eq!(pieces(&[3, 2], Some(&[5, 1]), u64::MAX), [(0, 8), (20, 8), (40, 8)]);
    }

    #[test]
    fn a_transposed_matrix_goes_element_by_element() {
        let expected = [(0, 4), (12, 4), (4, 4), (16, 4), (8, 4), (20, 4)];
        assert_eq!(pieces(&[3, 2], Some(&[1, 3]), u64::MAX), expected);
    }

    #[test]
    fn a_negative_stride_walks_backwards() {
        assert_eq!(pieces(&[3], Some(&[-1]), u64::MAX), [(0, 4), (-4, 4), (-8, 4)]);
    }

    #[test]
    fn strides_as_far_as_addresses_go_do_not_overflow() {
        let far = i64::MAX / 5;
        let both_ways = [(0, 4), (far * 4, 4)];
        assert_eq!(pieces(&[2, 1], Some(&[far, i64::MAX]), u64::MAX), both_ways);
    }

    #[test]
    fn a_stride_of_zero_repeats() {
        assert_eq!(pieces(&[2, 2], Some(&[0, 1]), u64::MAX), [(0, 8), (0, 8)]);
    }

    #[test]
    fn a_limit_cuts_runs_and_the_walk_goes_on_where_it_was_cut() {
        assert_eq!(pieces(&[2, 2], Some(&[3, 1]), 5), [(0, 5), (5, 3), (12, 5), (17, 3)]);
    }
}
