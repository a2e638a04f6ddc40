//! What tells a kernel with its configuration from every other one of a process: types and values,
//! no names, since two kernels may share all of these.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

/// Two are equal if the same expansion of `#[kernel]`, with the same type arguments, was given equal
/// configurations. The body of the kernel comes along, in one allocation.
#[derive(Clone)]
pub struct KernelIdentity {
    definition: Arc<dyn Definition>,
    /// Of the definition: launches look for what they know by it.
    hash: u64,
}

impl KernelIdentity {
    /// `Config` is a type that each expansion defines anew, `Types` a type made of all type arguments.
    pub(super) fn new<Types, Config>(
        config: Config,
        body: impl Fn() + Send + Sync + 'static,
    ) -> Self
    where
        Types: 'static,
        Config: Configuration,
    {
        let definition = Defined {
            config,
            body,
            types: PhantomData::<fn() -> Types>,
        };
        let mut hasher = DefaultHasher::new();
        definition.kernel().hash(&mut hasher);
        definition.config.feed(&mut hasher);
        Self {
            hash: hasher.finish(),
            definition: Arc::new(definition),
        }
    }

    /// The configuration, printed.
    #[must_use]
    pub fn config(&self) -> String {
        format!("{:?}", self.definition.config())
    }

    /// Whether that is the same kernel with the same configuration.
    // Of one that was kept the definitions are one: the hot path does without this.
    #[cold]
    fn is_like(&self, other: &dyn Definition) -> bool {
        let one = &*self.definition;
        one.kernel() == other.kernel() && one.config().equals(other.config())
    }

    /// Runs the body.
    pub(super) fn run(&self) {
        self.definition.run();
    }
}

impl PartialEq for KernelIdentity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.definition, &other.definition)
            || self.hash == other.hash && self.is_like(&*other.definition)
    }
}

impl Eq for KernelIdentity {}

impl Hash for KernelIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for KernelIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = &*self.definition;
        f.debug_tuple("KernelIdentity")
            .field(&definition.kernel())
            .field(&definition.config())
            .finish()
    }
}

/// A kernel of any type.
trait Definition: Send + Sync {
    fn kernel(&self) -> TypeId;
    fn config(&self) -> &dyn Configuration;
    fn run(&self);
}

struct Defined<Config, Types, Body> {
    config: Config,
    body: Body,
    types: PhantomData<fn() -> Types>,
}

impl<Config, Types, Body> Definition for Defined<Config, Types, Body>
where
    Config: Configuration,
    Types: 'static,
    Body: Fn() + Send + Sync,
{
    fn kernel(&self) -> TypeId {
        TypeId::of::<(Config, Types)>()
    }

    fn config(&self) -> &dyn Configuration {
        &self.config
    }

    fn run(&self) {
        (self.body)();
    }
}

/// A configuration of any type.
pub trait Configuration: Any + fmt::Debug + Send + Sync {
    /// Whether the other is of the same type and equal.
    fn equals(&self, other: &dyn Configuration) -> bool;
    /// Hashes it.
    fn feed(&self, state: &mut dyn Hasher);
}

impl<C: Eq + Hash + fmt::Debug + Send + Sync + 'static> Configuration for C {
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

    fn identity<Config: Configuration, Types: 'static>(config: Config) -> KernelIdentity {
        KernelIdentity::new::<Types, Config>(config, || ())
    }

    #[test]
    fn type_arguments_and_configurations_tell_kernels_apart() {
        let one = identity::<u8, (f32,)>(1);
        assert_eq!(one, identity::<u8, (f32,)>(1));
        assert_ne!(one, identity::<u8, (f32,)>(2));
        assert_ne!(one, identity::<u8, (f64,)>(1));
        assert_ne!(one, identity::<u16, (f32,)>(1));
    }
}
