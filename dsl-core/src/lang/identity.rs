//! What tells a kernel with its configuration from every other one of a process: types and values,
//! no names, since two kernels may share all of these.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Two are equal if the same expansion of `#[kernel]`, with the same type arguments, was given equal
/// configurations.
#[derive(Clone)]
pub struct KernelIdentity {
    kernel: TypeId,
    config: Arc<dyn Configuration>,
}

impl KernelIdentity {
    /// `Config` is a type that each expansion defines anew, `Types` a type made of all type arguments.
    pub fn new<Config, Types>(config: Config) -> Self
    where
        Config: Eq + Hash + Send + Sync + 'static,
        Types: 'static,
    {
        Self {
            kernel: TypeId::of::<(Config, Types)>(),
            config: Arc::new(config),
        }
    }
}

impl PartialEq for KernelIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel && self.config.equals(&*other.config)
    }
}

impl Eq for KernelIdentity {}

impl Hash for KernelIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
        self.config.feed(state);
    }
}

impl fmt::Debug for KernelIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KernelIdentity").field(&self.kernel).finish()
    }
}

/// A configuration of any type.
trait Configuration: Any + Send + Sync {
    fn equals(&self, other: &dyn Configuration) -> bool;
    fn feed(&self, state: &mut dyn Hasher);
}

impl<C: Eq + Hash + Send + Sync + 'static> Configuration for C {
    fn equals(&self, other: &dyn Configuration) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<C>().is_some_and(|other| self == other)
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_arguments_and_configurations_tell_kernels_apart() {
        let one = KernelIdentity::new::<u8, (f32,)>(1);
        assert_eq!(one, KernelIdentity::new::<u8, (f32,)>(1));
        assert_ne!(one, KernelIdentity::new::<u8, (f32,)>(2));
        assert_ne!(one, KernelIdentity::new::<u8, (f64,)>(1));
        assert_ne!(one, KernelIdentity::new::<u16, (f32,)>(1));
    }
}
