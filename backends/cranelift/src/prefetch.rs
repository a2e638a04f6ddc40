//! Prefetches, for which CLIF has no instruction: code calls a function that keeps every register, and the
//! instruction takes the place of the call. Texts of the code have the calls.

use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, Signature, UserExternalName, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{ModuleReloc, ModuleRelocTarget};

use crate::Error;

/// Namespace of the names of prefetches: modules use those below.
const NAMESPACE: u32 = 2;

/// The opcode of a direct call, which the distance to what is called follows.
const CALL: u8 = 0xe8;

/// Bytes of such a call.
const INSTRUCTION: usize = 5;

/// What has as many bytes, and asks for the cache line at its first parameter, to read and to write.
const INSTRUCTIONS: [[u8; INSTRUCTION]; 2] = [
    // `prefetcht0 [rdi]` and `prefetchw [rdi]`, each with a `nop` of two bytes.
    [0x0f, 0x18, 0x0f, 0x66, 0x90],
    [0x0f, 0x0d, 0x0f, 0x66, 0x90],
];

/// What code calls to ask for the cache line at an address, to read and to write, where the machine can.
pub(crate) fn declare(func: &mut Function) -> Option<[FuncRef; 2]> {
    if !cfg!(all(target_arch = "x86_64", unix)) {
        return None;
    }
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.push(AbiParam::new(types::I64));
    let signature = func.import_signature(signature);
    Some([0, 1].map(|index| {
        let name = UserExternalName::new(NAMESPACE, index);
        let name = func.declare_imported_user_function(name);
        func.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            // What is near is called directly.
            colocated: true,
            patchable: false,
        })
    }))
}

/// Puts the instructions where `code` calls what [`declare`] made; returns all other relocations.
pub(crate) fn put(
    mut relocations: Vec<ModuleReloc>,
    code: &mut [u8],
) -> Result<Vec<ModuleReloc>, Error> {
    let mut result = Ok(());
    relocations.retain(|relocation| {
        let ModuleRelocTarget::User {
            namespace: NAMESPACE,
            index,
        } = relocation.name
        else {
            return true;
        };
        let instruction = INSTRUCTIONS.get(index as usize);
        let place = (relocation.offset as usize).checked_sub(1);
        let call = place.and_then(|place| code.get_mut(place..place + INSTRUCTION));
        match (instruction, call) {
            (Some(instruction), Some(call)) if call[0] == CALL => call.copy_from_slice(instruction),
            _ => result = Err(Error::Codegen("a prefetch is no direct call".to_string())),
        }
        false
    });
    result.map(|()| relocations)
}

#[cfg(test)]
mod tests {
    use cranelift_codegen::binemit::Reloc;

    use super::*;

    #[test]
    fn only_direct_calls_are_replaced() {
        let put_at = |offset, code: &mut [u8]| {
            let relocation = ModuleReloc {
                offset,
                kind: Reloc::X86CallPCRel4,
                name: ModuleRelocTarget::user(NAMESPACE, 1),
                addend: -4,
            };
            put(vec![relocation], code).map(|others| others.len())
        };
        let mut code = [0x90, CALL, 1, 2, 3, 4, 0xc3];
        assert_eq!(put_at(2, &mut code), Ok(0));
        let replaced = [0x90, 0x0f, 0x0d, 0x0f, 0x66, 0x90, 0xc3];
        assert_eq!(code, replaced);
        for offset in [0, 1, 2, 4, 7, 1000] {
            let error = put_at(offset, &mut code).expect_err("is refused");
            assert!(error.to_string().contains("a prefetch is no direct call"));
        }
        assert_eq!(code, replaced);
    }
}
