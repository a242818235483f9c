//! CPU sampling: systems other than Linux restrict it to privileged users, and have other interfaces.

use std::time::Duration;

use super::{BlockedTime, CpuSample, Frequency, PerfCause, PerfError, SampleLoss, UserStack};
use crate::model::CpuThread;
use crate::net::client::Client;

/// A sampler; cannot be created.
pub enum CpuSampler {}

impl Client {
    /// Sampling is not supported on this system.
    ///
    /// # Errors
    /// Always.
    pub fn sample_cpu(&self, _: Frequency) -> Result<CpuSampler, PerfError> {
        let cause = if self.own_proc().is_some() { PerfCause::Unsupported } else { PerfCause::Ended };
        Err(PerfError { pid: self.endpoint().key.pid, cause })
    }
}

#[expect(missing_docs, reason = "nothing of it can be called")]
impl CpuSampler {
    pub fn drain(&mut self, _: impl FnMut(&CpuSample<'_>)) {
        match *self {}
    }

    pub fn finish(&mut self, _: impl FnMut(&CpuSample<'_>)) {
        match *self {}
    }

    pub fn record_stack(&mut self, _: u64) -> bool {
        match *self {}
    }

    pub fn take_stacks(&mut self, _: impl FnMut(&UserStack<'_>)) {
        match *self {}
    }

    pub fn take_blocked(&mut self) -> std::vec::Drain<'_, BlockedTime> {
        match *self {}
    }

    pub fn includes_kernel(&self) -> bool {
        match *self {}
    }

    pub fn loss(&self) -> SampleLoss {
        match *self {}
    }

    pub fn drain_interval(&self) -> Duration {
        match *self {}
    }

    pub fn period_ns(&self) -> u64 {
        match *self {}
    }

    pub fn threads(&mut self) -> Vec<CpuThread> {
        match *self {}
    }
}
