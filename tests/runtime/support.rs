//! A device of the null driver whose commands can be looked at.

use std::ops::Deref;
use std::sync::Arc;

use dlhal::null::{self, Command};
use dlhal::runtime::{Device, Tuning};

pub(crate) use crate::common::{Api, assert_error, host, on_device};

pub(crate) struct Rig {
    pub(crate) null: Arc<null::Device>,
    api: Api,
}

impl Deref for Rig {
    type Target = Api;
    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Rig {
    pub(crate) fn new(options: null::Options) -> Self {
        Self::tuned(options, &Tuning::default())
    }

    pub(crate) fn tuned(options: null::Options, tuning: &Tuning) -> Self {
        let null = null::Device::new(options);
        let device = Device::tuned(0, null.clone(), tuning).unwrap();
        Self { null, api: Api { device } }
    }

    /// All commands that were submitted, those of each submission after the other.
    pub(crate) fn commands(&self) -> Vec<Command> {
        self.null.log().into_iter().flat_map(|submitted| submitted.commands).collect()
    }

    /// One letter for each command: C for a copy, D for a dispatch, B for a barrier between them.
    pub(crate) fn letters(&self) -> String {
        let letter = |command: &Command| match command {
            Command::Copy { .. } => 'C',
            Command::Dispatch { .. } => 'D',
            Command::Barrier { .. } => 'B',
            Command::Fill { .. } => 'F',
            _ => '?',
        };
        self.commands().iter().map(letter).collect()
    }
}
