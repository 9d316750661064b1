//! Rows of launches of the add kernel through the library.

use std::time::Instant;

use dlhal::Result;

use super::api::{Api, Args, Function, Stream, Tensor};
use super::kernels::{ADD_BYTES, FLOATS, OUTPUTS};

/// Whether each launch of a row reads what the one before has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    Dependent,
    Independent,
}

impl Row {
    /// Outputs that the launches write in turn; so many do not have to wait for each other.
    pub(super) fn outputs(self) -> usize {
        match self {
            Self::Dependent => 1,
            Self::Independent => OUTPUTS,
        }
    }
}

/// A stream, and arguments of launches that write the row's outputs in turn. The output of a dependent
/// row is its first input as well.
pub(super) struct Launches<'a> {
    api: &'a Api,
    function: &'a Function,
    pub(super) stream: Stream,
    pub(super) args: Vec<Args>,
    /// What the arguments name.
    _tensors: Vec<Tensor>,
}

impl<'a> Launches<'a> {
    pub(super) fn new(api: &'a Api, function: &'a Function, row: Row) -> Result<Self> {
        let tensors: Vec<Tensor> =
            (0..2 + row.outputs()).map(|_| api.tensor(ADD_BYTES)).collect::<Result<_>>()?;
        let of = |c| {
            let first = if row == Row::Dependent { c } else { &tensors[0] };
            Args::new(&[first, &tensors[1], c], &[FLOATS], 1, FLOATS)
        };
        let args = tensors[2..].iter().map(of).collect();
        Ok(Self { api, function, stream: api.stream()?, args, _tensors: tensors })
    }

    /// Seconds of `count` launches: of the calls alone, and until they are done.
    pub(super) fn run(&self, count: usize) -> Result<(f64, f64)> {
        let start = Instant::now();
        for turn in 0..count {
            let args = &self.args[turn % self.args.len()];
            self.api.launch(self.function, args, &self.stream)?;
        }
        let called = start.elapsed().as_secs_f64();
        self.stream.sync()?;
        Ok((called, start.elapsed().as_secs_f64()))
    }
}
