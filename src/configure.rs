//! What calling a `#[kernel]` function gives: the kernel with its setters.

use std::fmt;
use std::sync::{Arc, OnceLock};

use exactile_core::for_each_schedule_field;
use exactile_core::ir::Grid;
use exactile_core::lang::KernelSource;
use exactile_core::target::{Determinism, Schedule};

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::placement::HostArguments;

/// The grid that a kernel states, once what it asks of its configuration and arguments holds.
type Place<C> = fn(&C, &mut HostArguments<'_>) -> Result<Option<Grid>>;

/// What an expansion of `#[kernel]` knows of its kernel; not for users.
#[doc(hidden)]
pub struct Definition<P, C: 'static> {
    /// The function's name.
    pub name: &'static str,
    /// Everything that has a default at it.
    pub config: C,
    /// The kernel of a configuration.
    pub source: fn(C) -> KernelSource<P>,
    /// The grid, where the kernel states one or has a constraint.
    pub place: Option<Place<C>>,
    /// The schedule of a configuration.
    pub schedule: fn(&mut C) -> &mut Schedule,
    /// The const generics.
    pub metas: &'static [MetaRow<C>],
}

/// A const generic of a kernel; not for users.
#[doc(hidden)]
pub struct MetaRow<C: 'static> {
    /// Its name.
    pub name: &'static str,
    /// The name of its setter.
    pub setter: &'static str,
    /// Whether it has a default.
    pub has_default: bool,
    /// The configuration with each smaller number of its range, where its default is the most.
    pub smaller: Option<fn(&C) -> Vec<C>>,
    /// The configuration with each number of its range; none where it has no range.
    pub each: Option<fn(&C) -> Vec<C>>,
    /// The numbers of its range.
    pub range: fn() -> Vec<usize>,
}

/// A kernel with what is set of its configuration; not for users.
#[doc(hidden)]
pub struct Configured<P, C: 'static> {
    pub(crate) definition: Definition<P, C>,
    /// A bit for each const generic that was set.
    set: u64,
    pub(crate) determinism: Determinism,
    ready: OnceLock<Kernel<P>>,
}

impl<P, C: Copy> Clone for Definition<P, C> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<P, C: Copy> Clone for Configured<P, C> {
    fn clone(&self) -> Self {
        Self {
            definition: self.definition.clone(),
            set: self.set,
            determinism: self.determinism,
            ready: self.ready.clone(),
        }
    }
}

impl<P, C: fmt::Debug> fmt::Debug for Configured<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.definition.name)
            .field("config", &self.definition.config)
            .field("determinism", &self.determinism)
            .finish()
    }
}

/// The mark of a const generic, of which a kernel has 64 at most.
fn bit(place: usize) -> u64 {
    1 << (place % 64)
}

impl<P: 'static, C: Copy + Send + Sync + 'static> Configured<P, C> {
    /// A kernel of which nothing is set.
    pub fn new(definition: Definition<P, C>) -> Self {
        Self {
            definition,
            set: 0,
            determinism: Determinism::default(),
            ready: OnceLock::new(),
        }
    }

    /// Sets the const generic at this place.
    pub fn set(&mut self, place: usize, set: impl FnOnce(&mut C)) {
        self.set |= bit(place);
        self.change(set);
    }

    /// Sets all const generics and the schedule.
    pub(crate) fn set_all(&mut self, config: C) {
        self.set = u64::MAX;
        self.change(|it| *it = config);
    }

    /// Whether the const generic at this place was set.
    pub(crate) fn is_set(&self, place: usize) -> bool {
        self.set & bit(place) != 0
    }

    fn change(&mut self, change: impl FnOnce(&mut C)) {
        change(&mut self.definition.config);
        self.ready = OnceLock::new();
    }

    /// The kernel as it is configured.
    pub fn kernel(&self) -> &Kernel<P> {
        self.ready.get_or_init(|| {
            let Definition {
                name,
                config,
                source,
                place,
                ..
            } = self.definition;
            let source = source(config);
            Kernel {
                smaller: self.smaller(source.order()),
                source,
                determinism: self.determinism,
                missing: self.missing(|_| false).map(Arc::from),
                ready: None,
                place: place.map(|place| -> crate::kernel::Placement {
                    Arc::new(move |bound| place(&config, &mut HostArguments::new(name, bound)))
                }),
            }
        })
    }

    /// Refuses a kernel of which a const generic has neither a number nor a default, nor numbers that a tuner tries.
    pub(crate) fn check_open(&self) -> Result<()> {
        check_set(
            self.definition.name,
            self.missing(|meta| meta.each.is_some()).as_deref(),
        )
    }

    /// What has neither a number nor a default, of those that nobody chooses.
    fn missing(&self, is_chosen: impl Fn(&MetaRow<C>) -> bool) -> Option<String> {
        let mut metas = self.definition.metas.iter().enumerate();
        let has_number = |place, meta: &MetaRow<C>| meta.has_default || self.is_set(place);
        let missing = metas.find(|(place, meta)| !has_number(*place, meta) && !is_chosen(meta));
        missing.map(|(_, MetaRow { name, setter, .. })| {
            format!(
                "`{name}` is not set: call `.{setter}(..)`, or give it a default, `#[kernel({name} = ..)]`"
            )
        })
    }
}

macro_rules! schedule_setters {
    ($($(#[doc = $about:literal])+ $variant:ident $name:ident { $($row:tt)* })*) => {
        /// A kernel as calling a `#[kernel]` function gives it, which setters configure: those of its const generics, which
        /// are its own, and these. What is not set has the default of the kernel or is the compiler's to choose.
        ///
        /// It is used as the [`Kernel`] that it is configured to.
        pub trait Configure: Clone + Send + 'static {
            /// The tuple of the types of its parameters.
            type Parameters: 'static;
            /// Its const generics and its schedule.
            type Config: Copy + Eq + fmt::Debug + Send + Sync + 'static;
            #[doc(hidden)]
            fn configured(&self) -> &Configured<Self::Parameters, Self::Config>;
            #[doc(hidden)]
            fn configured_mut(&mut self) -> &mut Configured<Self::Parameters, Self::Config>;

            $(
                $(#[doc = $about])+
                #[must_use]
                fn $name(mut self, $name: u32) -> Self {
                    change_schedule(&mut self, |it| *it = it.$name($name));
                    self
                }
            )*

            /// The numbers that `#[meta(..)]` states for a const generic, in their order: what a tuner tries. None where it
            /// states nothing, and where there is no const generic of this name.
            fn range_of(&self, name: &str) -> Vec<usize> {
                let metas = self.configured().definition.metas.iter();
                let own = metas.filter(|meta| meta.name == name);
                own.flat_map(|meta| (meta.range)()).collect()
            }

            /// The kernel as it is configured, whose type is that of all kernels with the same parameters.
            fn into_kernel(self) -> Kernel<Self::Parameters> {
                self.configured().kernel().clone()
            }

            /// How the work of a program is laid out, all fields at once.
            #[must_use]
            fn schedule(mut self, schedule: Schedule) -> Self {
                change_schedule(&mut self, |it| *it = schedule);
                self
            }

            /// Promises another level of determinism than the default, `Exact`. It becomes part of the
            /// IR; an op that cannot honour it is an error with its source line.
            #[must_use]
            fn determinism(mut self, level: Determinism) -> Self {
                let configured = self.configured_mut();
                configured.determinism = level;
                configured.change(|_| ());
                self
            }
        }
    };
}
for_each_schedule_field!(schedule_setters);

fn change_schedule<K: Configure>(kernel: &mut K, change: impl FnOnce(&mut Schedule)) {
    let configured = kernel.configured_mut();
    let schedule = configured.definition.schedule;
    configured.change(|config| change(schedule(config)));
}

impl<P> Kernel<P> {
    /// What keeps it from being compiled or launched at all.
    #[inline]
    pub(crate) fn check_set(&self) -> Result<()> {
        check_set(self.name(), self.missing.as_deref())
    }
}

#[inline]
fn check_set(kernel: &str, missing: Option<&str>) -> Result<()> {
    match missing {
        None => Ok(()),
        Some(missing) => Err(Error::Invalid(format!("kernel `{kernel}`: {missing}"))),
    }
}
