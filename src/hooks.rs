//! Functions of the program that are called around launches.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use exactile_core::ir::{Access, Grid};
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::{Bounds, Schedule};

use crate::code::Code;
use crate::device::Device;

/// A launch, as a hook is told of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchInfo<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// Which stream of the device it is put into; 0 is the default one.
    pub stream: usize,
    /// Programs along each axis.
    pub grid: Grid,
    /// What the kernel says of its schedule.
    pub schedule: Schedule,
    /// Whether its accesses are checked.
    pub bounds: Bounds,
    /// Bytes of the arrays that it may read alone.
    pub bytes_read: u64,
    /// Bytes of the arrays that it may write.
    pub bytes_written: u64,
}

impl<'a> LaunchInfo<'a> {
    pub(crate) fn of(code: &'a Code, stream: usize, launch: &Launch<'_>) -> Self {
        let bytes = |wanted: Access| {
            let arguments = launch.arguments.iter();
            let bytes = arguments.map(|argument| match *argument {
                Passed::Memory { bytes, access, .. } if access == wanted => bytes,
                Passed::Memory { .. } | Passed::Scalar(_) => 0,
            });
            bytes.sum()
        };
        Self {
            kernel: &code.name,
            stream,
            grid: launch.grid,
            schedule: code.schedule,
            bounds: code.bounds,
            bytes_read: bytes(Access::Read),
            bytes_written: bytes(Access::ReadWrite),
        }
    }
}

/// When a hook is called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LaunchMoment {
    /// Before the launch is put into its stream.
    Before,
    /// When it is in its stream; on the host it has ended then.
    After,
    /// When it could not be put there.
    Failed,
}

type Hook = dyn Fn(&LaunchInfo<'_>, LaunchMoment) + Send + Sync;

/// Has a hook be called until it is dropped: [`Device::on_launch`] gives it.
#[must_use = "the hook is called until this is dropped"]
pub struct LaunchHook {
    hook: Arc<Hook>,
    hooks: Weak<Hooks>,
}

/// The hooks of a device.
#[derive(Default)]
pub(crate) struct Hooks {
    /// Whether there is one, for launches to pass by without the lock.
    any: AtomicBool,
    list: Mutex<Vec<Arc<Hook>>>,
}

thread_local! {
    /// Whether this thread is in a hook, whose own launches call none.
    static IS_IN_HOOK: Cell<bool> = const { Cell::new(false) };
}

/// Leaves the hook, even after a panic.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        IS_IN_HOOK.set(false);
    }
}

impl Hooks {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Hook>>> {
        // A panic elsewhere leaves the list whole: each change is one insertion or removal.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls all of them, none under the lock.
    fn call(&self, info: &LaunchInfo<'_>, moment: LaunchMoment) {
        if IS_IN_HOOK.replace(true) {
            return;
        }
        let _leaving = Leaving;
        let hooks = self.list().clone();
        hooks.iter().for_each(|hook| hook(info, moment));
    }

    /// Whether launches call none.
    pub(crate) fn are_none(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Does `work` between the calls of the hooks, if there are any.
    pub(crate) fn around<'i, T, E>(
        &self,
        info: impl FnOnce() -> LaunchInfo<'i>,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if self.are_none() {
            return work();
        }
        let info = info();
        self.call(&info, LaunchMoment::Before);
        let done = work();
        let moment = match &done {
            Ok(_) => LaunchMoment::After,
            Err(_) => LaunchMoment::Failed,
        };
        self.call(&info, moment);
        done
    }
}

impl Device {
    /// Has `hook` be called before and after each launch on this device, by whatever thread, until what this gives is dropped.
    /// It is called on the thread that launches, which waits for it; launches that it makes itself call no hook. Launches that
    /// are captured call none, and no replay of a graph does.
    ///
    /// ```
    /// # use exactile::prelude::*;
    /// # use exactile::LaunchMoment;
    /// # use std::sync::{Arc, Mutex};
    /// #[kernel]
    /// fn double(x: PtrMut<f32>) {
    ///     let at = x + arange(0, 4);
    ///     store(at, load(at) * 2.0);
    /// }
    ///
    /// let device = Device::cpu();
    /// let launched = Arc::new(Mutex::new(Vec::new()));
    /// let list = Arc::clone(&launched);
    /// let hook = device.on_launch(move |info, moment| {
    ///     if moment == LaunchMoment::After {
    ///         list.lock().unwrap().push((info.kernel.to_string(), info.bytes_written));
    ///     }
    /// });
    /// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
    /// double().launch(&device, 1, (&mut x,))?;
    /// drop(hook);
    /// double().launch(&device, 1, (&mut x,))?;
    /// assert_eq!(*launched.lock().unwrap(), [("double".to_string(), 16)]);
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn on_launch(
        &self,
        hook: impl Fn(&LaunchInfo<'_>, LaunchMoment) + Send + Sync + 'static,
    ) -> LaunchHook {
        let (hook, hooks): (Arc<Hook>, _) = (Arc::new(hook), self.hooks());
        let mut list = hooks.list();
        list.push(Arc::clone(&hook));
        hooks.any.store(true, Ordering::Relaxed);
        drop(list);
        LaunchHook {
            hook,
            hooks: Arc::downgrade(hooks),
        }
    }
}

impl Drop for LaunchHook {
    fn drop(&mut self) {
        let Some(hooks) = self.hooks.upgrade() else {
            return;
        };
        let mut list = hooks.list();
        list.retain(|hook| !Arc::ptr_eq(hook, &self.hook));
        hooks.any.store(!list.is_empty(), Ordering::Relaxed);
    }
}

impl fmt::Debug for LaunchHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaunchHook")
    }
}
