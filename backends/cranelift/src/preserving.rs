//! Functions that change no register: code that hardly ever calls them keeps what it computes with where it is.

use cranelift_codegen::isa::CallConv;

/// A function for compiled code.
pub(crate) struct Callee {
    pub(crate) name: &'static str,
    pub(crate) address: *const u8,
    /// None is that of the machine.
    pub(crate) convention: Option<CallConv>,
}

#[cfg(all(target_arch = "x86_64", unix))]
mod x86_64 {
    use std::arch::naked_asm;

    use crate::run::out_of_bounds;

    /// [`out_of_bounds`], around which registers are kept on the stack.
    #[unsafe(naked)]
    pub(super) extern "C" fn report() {
        // Nine words and the return address are ten, so that the stack is aligned to 16 bytes.
        naked_asm!(
            "push rax",
            "push rcx",
            "push rdx",
            "push rsi",
            "push rdi",
            "push r8",
            "push r9",
            "push r10",
            "push r11",
            "sub rsp, 256",
            "movups [rsp], xmm0",
            "movups [rsp + 16], xmm1",
            "movups [rsp + 32], xmm2",
            "movups [rsp + 48], xmm3",
            "movups [rsp + 64], xmm4",
            "movups [rsp + 80], xmm5",
            "movups [rsp + 96], xmm6",
            "movups [rsp + 112], xmm7",
            "movups [rsp + 128], xmm8",
            "movups [rsp + 144], xmm9",
            "movups [rsp + 160], xmm10",
            "movups [rsp + 176], xmm11",
            "movups [rsp + 192], xmm12",
            "movups [rsp + 208], xmm13",
            "movups [rsp + 224], xmm14",
            "movups [rsp + 240], xmm15",
            "call {function}",
            "movups xmm0, [rsp]",
            "movups xmm1, [rsp + 16]",
            "movups xmm2, [rsp + 32]",
            "movups xmm3, [rsp + 48]",
            "movups xmm4, [rsp + 64]",
            "movups xmm5, [rsp + 80]",
            "movups xmm6, [rsp + 96]",
            "movups xmm7, [rsp + 112]",
            "movups xmm8, [rsp + 128]",
            "movups xmm9, [rsp + 144]",
            "movups xmm10, [rsp + 160]",
            "movups xmm11, [rsp + 176]",
            "movups xmm12, [rsp + 192]",
            "movups xmm13, [rsp + 208]",
            "movups xmm14, [rsp + 224]",
            "movups xmm15, [rsp + 240]",
            "add rsp, 256",
            "pop r11",
            "pop r10",
            "pop r9",
            "pop r8",
            "pop rdi",
            "pop rsi",
            "pop rdx",
            "pop rcx",
            "pop rax",
            "ret",
            function = sym out_of_bounds,
        );
    }
}

/// What records an access out of bounds.
pub(crate) fn report() -> Callee {
    Callee {
        name: "exactile_out_of_bounds",
        #[cfg(all(target_arch = "x86_64", unix))]
        address: x86_64::report as *const u8,
        #[cfg(not(all(target_arch = "x86_64", unix)))]
        address: crate::run::out_of_bounds as *const u8,
        convention: cfg!(all(target_arch = "x86_64", unix)).then_some(CallConv::PreserveAll),
    }
}
