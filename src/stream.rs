//! Queues of launches on a device, and points in them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::capture::refuse;
use crate::cuda::{Gpu, Point};
use crate::device::Device;
use crate::error::{Error, Result};

/// Where a launch is put: a [`Stream`], or a [`Device`], which stands for its default stream.
pub trait Queue: sealed::Queue {}

pub(crate) mod sealed {
    use crate::device::Device;

    pub trait Queue {
        /// The device, and which of its streams.
        fn place(&self) -> (&Device, usize);
    }

    impl<Q: Queue> Queue for &Q {
        fn place(&self) -> (&Device, usize) {
            Q::place(self)
        }
    }
}

impl<Q: Queue> Queue for &Q {}

/// The stream of launches on a device itself, of which each device has one.
pub(crate) const DEFAULT: usize = 0;

impl Queue for Device {}
impl sealed::Queue for Device {
    fn place(&self) -> (&Device, usize) {
        (self, self.default_stream())
    }
}

/// Launches on a device that run in order, beside those of other streams.
///
/// A launch returns when it is queued. What two launches in different streams do with one array has the order of the
/// launches: where one of them writes it, the later waits for the earlier one on the device, and the host does not
/// wait. On a device that is the host, a launch has ended when it returns.
///
/// Clones stand for the same stream. Dropping the last one waits for nothing.
///
/// ```
/// # use exactile::{Buffer, Device, prelude::*};
/// #[kernel]
/// fn double(x: PtrMut<f32>) {
///     let at = x + arange(0, 4);
///     store(at, load(at) * 2.0);
/// }
///
/// let device = Device::cpu();
/// let stream = device.stream()?;
/// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
/// double().launch(&stream, 1, (&mut x,))?;
/// stream.synchronize()?;
/// assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0, 8.0]);
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    device: Device,
    line: Arc<Line>,
}

/// Gives its number back when nobody has the stream any more.
struct Line {
    number: usize,
    gpu: Option<Arc<Gpu>>,
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(gpu) = &self.gpu {
            gpu.give_back(self.number);
        }
    }
}

impl Queue for Stream {}
impl sealed::Queue for Stream {
    fn place(&self) -> (&Device, usize) {
        (&self.device, self.line.number)
    }
}

impl Stream {
    /// A stream beside all others of `device`.
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let number = match device.gpu() {
            None => device.number_of_host_stream(),
            Some(gpu) => gpu.stream()?,
        };
        Ok(Self::of_line(device, number))
    }

    pub(crate) fn of_line(device: &Device, number: usize) -> Self {
        let gpu = device.gpu().cloned();
        Self {
            device: device.clone(),
            line: Arc::new(Line { number, gpu }),
        }
    }

    pub(crate) fn number(&self) -> usize {
        self.line.number
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all launches in this stream have ended.
    ///
    /// # Errors
    /// The first error of a launch in this stream that nobody was told, as [`Kernel::launch`](crate::Kernel::launch)
    /// describes it; [`Kernel::run`](crate::Kernel::run) tells its own.
    pub fn synchronize(&self) -> Result<()> {
        self.device.wait_for(self.line.number)
    }

    /// A point after all that is in the stream now.
    pub fn event(&self) -> Result<Event> {
        self.device.event_in(self.line.number)
    }

    /// Has all that is put into this stream from now on wait for `event`, which may be of another stream. Launches
    /// that share arrays wait for each other without it.
    pub fn wait(&self, event: &Event) -> Result<()> {
        refuse("a wait for an event")?;
        match (&self.line.gpu, &event.point) {
            (Some(gpu), At::Gpu(point)) => gpu.wait_for_point(self.line.number, point),
            (Some(_) | None, At::Host(_)) => Ok(()),
            (None, At::Gpu(_)) => event.synchronize(),
        }
    }
}

impl Device {
    /// A point in the default stream, after all that is in it now.
    pub fn event(&self) -> Result<Event> {
        self.event_in(self.default_stream())
    }

    pub(crate) fn event_in(&self, stream: usize) -> Result<Event> {
        refuse("an event")?;
        let point = match self.gpu() {
            None => At::Host(Instant::now()),
            Some(gpu) => At::Gpu(gpu.point(stream)?),
        };
        Ok(Event { point })
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({}, {})", self.device, self.line.number)
    }
}

/// A point in a stream, with the time when the device came to it.
#[derive(Debug)]
pub struct Event {
    pub(crate) point: At,
}

/// Where a point is.
#[derive(Debug)]
pub(crate) enum At {
    /// Launches on the host have ended when they return.
    Host(Instant),
    Gpu(Point),
}

impl Event {
    /// Waits until the device has come to this point. Errors of launches are told by streams and devices, not here.
    pub fn synchronize(&self) -> Result<()> {
        match &self.point {
            At::Host(_) => Ok(()),
            At::Gpu(point) => point.synchronize(),
        }
    }

    /// Whether the device has come to this point.
    pub fn has_ended(&self) -> Result<bool> {
        match &self.point {
            At::Host(_) => Ok(true),
            At::Gpu(point) => point.has_ended(),
        }
    }

    /// Seconds from `earlier` to this point, which is waited for; negative where this one came first. A GPU measures
    /// to about half a microsecond.
    ///
    /// # Errors
    /// Where one point is of a GPU and the other one of another device. All devices on the host have one clock.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64> {
        match (&self.point, &earlier.point) {
            (At::Host(this), At::Host(earlier)) => {
                Ok(match this.checked_duration_since(*earlier) {
                    Some(time) => time.as_secs_f64(),
                    None => -earlier.duration_since(*this).as_secs_f64(),
                })
            }
            (At::Gpu(this), At::Gpu(earlier)) => this.seconds_since(earlier),
            (At::Host(_), At::Gpu(_)) | (At::Gpu(_), At::Host(_)) => Err(Error::Invalid(
                "the time between events of different devices is not known".to_string(),
            )),
        }
    }
}
