//! Collects the errors of one expansion, so that they come all at once.

use std::cell::RefCell;
use std::fmt::Display;
use std::thread;

use proc_macro2::{Span, TokenStream};

/// The errors so far. [`Context::check`] must read them before it is dropped.
pub(crate) struct Context {
    errors: RefCell<Option<Vec<syn::Error>>>,
}

impl Context {
    pub(crate) fn new() -> Self {
        Self {
            errors: RefCell::new(Some(Vec::new())),
        }
    }

    /// Records an error at `span`.
    pub(crate) fn error(&self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Records an error made by `syn`.
    pub(crate) fn push(&self, error: syn::Error) {
        self.errors
            .borrow_mut()
            .as_mut()
            .expect("broken invariant: errors are recorded before they are read")
            .push(error);
    }

    /// All errors as the output of the macro.
    pub(crate) fn check(self) -> Result<(), TokenStream> {
        let errors = self.errors.borrow_mut().take().unwrap_or_default();
        if errors.is_empty() {
            return Ok(());
        }
        Err(errors.iter().map(syn::Error::to_compile_error).collect())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let unread = self.errors.borrow().is_some();
        assert!(
            !unread || thread::panicking(),
            "broken invariant: the errors of an expansion are read"
        );
    }
}
