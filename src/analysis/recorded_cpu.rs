//! Processor time of a process in a file: samples by the kernel (`Universal.Events`), and the names that come with them (`Universal.System`).

use crate::clr::EventKind;
use crate::nettrace::{Event, ThreadId};

use super::images::NativeCode;
use super::methods::{CpuSamples, CpuStack, Profile};
use super::{Images, NativeFunction, Symbols};

/// Samples of the processor time of one process. A file of several has none here: addresses of one process mean others in another.
#[derive(Debug, Default)]
pub(super) struct RecordedCpu {
    images: Images,
    samples: Option<(u32, CpuSamples)>,
    is_of_several: bool,
    /// The frames of a sample; kept for their memory.
    frames: Vec<u64>,
}

/// Addresses of the kernel are not below this.
const KERNEL: u64 = 1 << 63;

impl RecordedCpu {
    /// Takes an event of a file whose samples stand for so many nanoseconds each.
    pub(super) fn feed(&mut self, kind: EventKind, event: &Event<'_>, at: i64, period_ns: u32) -> Option<()> {
        if kind != EventKind::CpuSample {
            return self.images.feed(kind, event);
        }
        let ThreadId { process, thread, .. } = event.thread();
        let (of, samples) = self.samples.get_or_insert_with(|| (process, CpuSamples::new(period_ns.into())));
        self.is_of_several |= *of != process;
        if self.is_of_several {
            return None;
        }
        self.frames.clear();
        self.frames.extend(event.stack().into_iter().flat_map(|stack| stack.frames()));
        let kernel = self.frames.iter().take_while(|frame| **frame >= KERNEL).count();
        let (kernel, user) = self.frames.split_at(kernel);
        samples.add(&CpuStack { thread: ThreadId::of(thread), at, kernel, user, missing: None });
        Some(())
    }

    /// All samples by function; `None` where there are none, or such of several processes.
    pub(super) fn profile(&self) -> Option<Profile> {
        let (process, samples) = self.samples.as_ref().filter(|_| !self.is_of_several)?;
        let mut symbols = Symbols::default();
        for address in samples.addresses() {
            // Another address of the function was before.
            if symbols.find(address).is_some() {
                continue;
            }
            let in_kernel = CpuSamples::kernel_address(address);
            let Some(code) = self.images.function_at(*process, in_kernel.unwrap_or(address)) else { continue };
            let NativeCode { start, size, name, image, origin } = &code;
            let start = if in_kernel.is_some() { *start & !KERNEL } else { *start };
            symbols.add_native(&NativeFunction { address, start, size: *size, name, image, origin: *origin });
        }
        Some(samples.profile(&symbols))
    }
}
