//! Streams that others have made, which stay with what keeps them while their work goes on.

#![expect(unsafe_code, reason = "streams of others are there by their word")]

use std::ffi::c_void;
use std::mem;
use std::sync::Arc;

use super::{Gpu, Queues, failed};
use crate::error::Result;
use crate::foreign::Owner;

/// So many streams of others that nobody has are kept while their work goes on.
const MOST_VACANT: usize = 16;

impl Queues {
    /// A stream of others that nobody has and whose work has ended, or the one that nobody has had longest where many are
    /// kept; none that others capture, as nobody may wait for it then.
    fn vacant_without_work(&mut self) -> Option<usize> {
        let has_ended = |&number: &usize| self.list[number].stream.has_ended().unwrap_or(false);
        let ended = self.vacant.iter().position(has_ended);
        let waits = |&number: &usize| self.refuse_capture(number).is_ok();
        let oldest = (self.vacant.len() >= MOST_VACANT).then(|| self.vacant.iter().position(waits));
        ended.or(oldest.flatten()).map(|at| self.vacant.remove(at))
    }
}

impl Gpu {
    /// A stream that others have made: its number.
    ///
    /// # Safety
    /// `handle` is null or the driver's handle of a stream that is there as long as `keeper`.
    pub(crate) unsafe fn adopt(&self, handle: *mut c_void, keeper: Owner) -> Result<usize> {
        // SAFETY: handed on to the caller.
        let stream = unsafe { self.context.adopt(handle, keeper) }.map_err(failed)?;
        let mut queues = self.queues();
        let same = |&number: &usize| queues.list[number].stream.adopted() == Some(handle);
        if let Some(at) = queues.vacant.iter().position(same) {
            let number = queues.vacant.remove(at);
            queues.handed_out += 1;
            queues.list[number].owner = queues.handed_out;
            return Ok(number);
        }
        let vacant = queues.vacant_without_work();
        drop(queues);
        let number = match vacant {
            None => self.add(stream)?,
            Some(number) => {
                if let Err(error) = self.finish(number) {
                    self.give_back(number);
                    return Err(error);
                }
                let new = Arc::new(stream);
                let old = mem::replace(&mut self.queues().list[number].stream, new);
                // What kept it may have memory of this GPU, whose end takes the lock.
                drop(old);
                number
            }
        };
        self.hand_out(number)
    }
}
