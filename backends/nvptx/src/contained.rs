//! Where LLVM cannot go on it ends the process: here that is an error of this crate.
//!
//! LLVM works in a thread of its own. A fatal error is told by that thread, which then waits for ever, since nothing of
//! LLVM on its stack may run again or be left by unwinding; the memory of the module stays with it. LLVM holds no lock
//! then, and each module has a context of its own, so other threads go on.
#![expect(
    unsafe_code,
    reason = "LLVM calls back what it is given, with C strings"
)]

mod end;

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::panic::resume_unwind;
use std::ptr::{null, null_mut};
use std::sync::Once;
use std::sync::mpsc;
use std::thread;

use exactile_core::target::Target;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use llvm_sys::LLVMDiagnosticSeverity;
use llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::prelude::LLVMDiagnosticInfoRef;
use llvm_sys::support::LLVMParseCommandLineOptions;

use crate::error::{Error, Result};
use crate::target;
use end::Work;

/// Bytes of address space for the stack of LLVM, which recurses over what it compiles.
const STACK: usize = 64 << 20;

/// Tells who waits for a thread what its end is.
type Teller = Box<dyn Fn(String)>;

thread_local! {
    /// Of a thread in which LLVM works for this crate.
    static TELLER: RefCell<Option<Teller>> = const { RefCell::new(None) };
    /// What LLVM has said is wrong, and went on.
    static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// What `work` gives, or what LLVM says where it would end the process.
pub(crate) fn contained<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let _work = Work::begin()?;
    static INSTALLED: Once = Once::new();
    // SAFETY: the handler is a function, which does not unwind.
    INSTALLED.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(end)) });
    let (ended, outcome) = mpsc::channel();
    let body = move || {
        let fatal = ended.clone();
        TELLER.set(Some(Box::new(move |message| {
            // Whoever waited is there: nothing else ends the wait.
            let _ = fatal.send((Err(Error::Llvm(message)), End::Fatal));
        })));
        let made = work();
        let errors = ERRORS.take();
        let made = match errors.is_empty() {
            true => made,
            false => Err(Error::Llvm(errors.join("\n"))),
        };
        let _ = ended.send((made, End::Ordinary));
    };
    let builder = thread::Builder::new().stack_size(STACK);
    let thread = builder
        .spawn(body)
        .map_err(|error| Error::Llvm(format!("there is no thread for it: {error}")))?;
    match outcome.recv() {
        Ok((made, End::Fatal)) => made,
        Ok((made, End::Ordinary)) => thread.join().map_or_else(|it| resume_unwind(it), |()| made),
        Err(_) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(Error::Llvm("it ended without a word".to_string())),
        },
    }
}

/// Has LLVM make all that it makes when it first needs it. The end of the process waits for LLVM from then on, and from the end of
/// the first compilation at the latest.
pub fn prepare() -> Result<()> {
    const EMPTY: &str = "define ptx_kernel void @empty(ptr addrspace(1) %x) {\n  ret void\n}\n";
    contained(|| {
        let machine = target::machine(&Target::SM_90A)?;
        let context = Context::create();
        note_errors(&context);
        let text = MemoryBuffer::create_from_memory_range_copy(EMPTY.as_bytes(), "empty");
        let module = context.create_module_from_ir(text)?;
        target::configure(&module, &machine);
        target::optimize(&module, &machine)?;
        target::write_ptx(&module, &machine).map(drop)
    })
}

/// Sets options of LLVM that are its own and hold for the process, as its tools take them. One that it does not know
/// ends the process.
pub(crate) fn set_options<const N: usize>(options: [&CStr; N]) {
    let name = [c"exactile"];
    let arguments: Vec<*const c_char> = name.iter().chain(&options).map(|it| it.as_ptr()).collect();
    let count = arguments.len().try_into().expect("a few");
    // SAFETY: these are so many C strings, and what they hold is copied.
    unsafe { LLVMParseCommandLineOptions(count, arguments.as_ptr(), null()) };
}

/// How a thread has ended that LLVM worked in.
enum End {
    Ordinary,
    /// It never does.
    Fatal,
}

/// Takes the place of the end of the process in the threads of this crate.
extern "C" fn end(reason: *const c_char) {
    let tell = |teller: &RefCell<Option<Teller>>| {
        let teller = teller.try_borrow().ok();
        teller.as_deref().and_then(Option::as_ref).map(|tell| {
            // SAFETY: LLVM gives a C string that lives as long as the call.
            let reason = unsafe { CStr::from_ptr(reason) };
            tell(reason.to_string_lossy().into_owned());
        })
    };
    if TELLER.try_with(tell).is_ok_and(|told| told.is_some()) {
        loop {
            thread::park();
        }
    }
}

/// Keeps errors in a module that LLVM goes on after, in place of the end of the process.
pub(crate) fn note_errors(context: &Context) {
    // SAFETY: the context lives, and the handler is a function that takes nothing else.
    unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(note), null_mut()) };
}

extern "C" fn note(info: LLVMDiagnosticInfoRef, _: *mut c_void) {
    // SAFETY: LLVM gives what it has to say, and a C string of it that is given back.
    let message = unsafe {
        if LLVMGetDiagInfoSeverity(info) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        message
    };
    // Without a place for it the thread is ending.
    let _ = ERRORS.try_with(|errors| errors.borrow_mut().push(message));
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    /// PTX of a module of LLVM.
    fn emitted(text: &'static str) -> Result<String> {
        contained(move || {
            let machine = target::machine(&Target::SM_90A)?;
            let context = Context::create();
            note_errors(&context);
            let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
            let module = context.create_module_from_ir(buffer)?;
            target::configure(&module, &machine);
            target::write_ptx(&module, &machine)
        })
    }

    const WHOLE: &str = "define void @whole() {\n  ret void\n}\n";

    const CANNOT_BE_SELECTED: &str = "declare void @llvm.x86.sse2.pause()\n\
        define void @other() {\n  call void @llvm.x86.sse2.pause()\n  ret void\n}\n";

    const HAS_NO_REGISTER: &str = "define i32 @other() {\n  \
        %x = call i32 asm \"mov.u32 $0, 0;\", \"=Z\"()\n  ret i32 %x\n}\n";

    #[test]
    fn what_ends_llvm_is_an_error() {
        let threads: Vec<_> = (0..4)
            .map(|_| thread::spawn(|| emitted(CANNOT_BE_SELECTED)))
            .collect();
        for thread in threads {
            let ended = thread.join().expect("does not panic");
            let message = ended.expect_err("no GPU has it").to_string();
            assert!(message.contains("Cannot select"), "{message}");
            assert!(emitted(WHOLE).is_ok_and(|text| text.contains("whole")));
        }
    }

    #[test]
    fn errors_that_llvm_goes_on_after_are_errors() {
        let message = emitted(HAS_NO_REGISTER).expect_err("there is no such register");
        assert!(message.to_string().contains("constraint"), "{message}");
        assert!(emitted(WHOLE).is_ok());
    }

    #[test]
    #[expect(clippy::exit, reason = "the end of a process is what is tested")]
    fn the_process_ends_when_llvm_has_ended() {
        const CHILD: &str = "EXACTILE_TEST_END";
        const NAME: &str = "contained::tests::the_process_ends_when_llvm_has_ended";
        if std::env::var_os(CHILD).is_some() {
            prepare().expect("LLVM is there");
            let (begun, begins) = mpsc::channel();
            thread::spawn(move || {
                contained(move || {
                    begun.send(()).expect("it waits");
                    thread::sleep(Duration::from_millis(300));
                    eprintln!("it has ended");
                    Ok(())
                })
            });
            begins.recv().expect("it begins");
            std::process::exit(0);
        }
        let program = std::env::current_exe().expect("the test's binary has a path");
        let child = Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .expect("the test's binary starts");
        let text = String::from_utf8_lossy(&child.stderr);
        assert!(
            child.status.success() && text.contains("it has ended"),
            "{child:?}"
        );
    }

    #[test]
    fn a_panic_goes_on() {
        let panics = || contained(|| -> Result<()> { panic!("as it was") });
        let payload = catch_unwind(AssertUnwindSafe(panics)).expect_err("panics");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"as it was"));
    }
}
