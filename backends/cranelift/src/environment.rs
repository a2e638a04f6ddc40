//! The floating-point environment that all arithmetic of this project is defined in: rounding to
//! nearest, subnormal numbers kept, no exception raised. A host library may have set another one.

#![expect(unsafe_code, reason = "flags of the processor have no safe interface")]

use std::marker::PhantomData;

/// Sets the environment of this thread while it lives, and then what was there before. On processors
/// other than x86-64 it does nothing.
#[derive(Debug)]
pub struct StandardFloats {
    #[cfg(target_arch = "x86_64")]
    saved: u32,
    /// The flags belong to a thread.
    thread: PhantomData<*const ()>,
}

/// MXCSR as a process finds it: all exceptions masked and nothing else.
#[cfg(target_arch = "x86_64")]
const STANDARD: u32 = 0x1f80;

impl StandardFloats {
    /// Sets the environment.
    #[cfg(target_arch = "x86_64")]
    #[must_use = "the environment is set back when this is dropped"]
    pub fn new() -> Self {
        let mut saved = 0_u32;
        // SAFETY: the instruction stores four bytes at the address of a local variable.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut saved, options(nostack)) };
        load(STANDARD);
        Self {
            saved,
            thread: PhantomData,
        }
    }

    /// Does nothing.
    #[cfg(not(target_arch = "x86_64"))]
    #[must_use = "the environment is set back when this is dropped"]
    pub fn new() -> Self {
        Self {
            thread: PhantomData,
        }
    }
}

impl Default for StandardFloats {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for StandardFloats {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        load(self.saved);
    }
}

#[cfg(target_arch = "x86_64")]
fn load(flags: u32) {
    // SAFETY: the flags are the standard ones, or those that this thread had.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &flags, options(nostack, readonly)) };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn the_environment_is_standard_inside_and_as_it_was_after() {
        let least = f64::MIN_POSITIVE;
        let half = |number: f64| black_box(number) * black_box(0.5);
        let third = |number: f64| black_box(number) / black_box(3.0);
        let rounded = third(1.0);
        let _mine = StandardFloats::new();
        // Subnormals dropped, rounding up.
        load(STANDARD | 1 << 15 | 1 << 6 | 0x4000);
        assert!(half(least) == 0.0 && third(1.0) > rounded);
        let inner = StandardFloats::new();
        assert!(half(least) != 0.0 && third(1.0) == rounded);
        drop(inner);
        assert!(half(least) == 0.0 && third(1.0) > rounded);
    }
}
