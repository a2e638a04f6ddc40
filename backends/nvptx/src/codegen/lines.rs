//! The lines of the kernel's source, which PTX then names by `.loc`: nothing that an instruction follows from.

use std::collections::BTreeMap;
use std::sync::Arc;

use exactile_core::diagnostic::Loc;
use exactile_core::verify::LaneFunc;
use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DIFlags, DIFlagsConstants, DILocation, DIScope, DISubprogram, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;

/// The version of debug information that this LLVM reads.
const VERSION: u64 = 3;

/// Where instructions come from, for one kernel.
pub(super) struct Lines<'c> {
    context: &'c Context,
    info: DebugInfoBuilder<'c>,
    kernel: DISubprogram<'c>,
    /// Code of each file of the source.
    files: BTreeMap<Arc<str>, DIScope<'c>>,
}

impl<'c> Lines<'c> {
    /// Those of a kernel; nothing where no instruction has one.
    pub(super) fn of(
        func: &LaneFunc,
        context: &'c Context,
        module: &Module<'c>,
        kernel: FunctionValue<'c>,
    ) -> Option<Self> {
        let mut locs = func
            .all_insts()
            .into_iter()
            .map(|inst| &func.inst(inst).loc);
        let first = locs.find(|loc| loc.is_known())?;
        let version = context.i32_type().const_int(VERSION, false);
        module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, version);
        let (info, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::Rust,
            &first.file,
            "",
            "exactile",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let file = unit.get_file();
        let ty = info.create_subroutine_type(file, None, &[], DIFlags::PUBLIC);
        let (name, line) = (&func.name, first.line);
        let scope = unit.as_debug_info_scope();
        let none = DIFlags::PUBLIC;
        let entry = info.create_function(
            scope, name, None, file, line, ty, false, true, line, none, true,
        );
        kernel.set_subprogram(entry);
        Some(Self {
            context,
            info,
            kernel: entry,
            files: BTreeMap::new(),
        })
    }

    /// A place in the source; of what has none, the kernel.
    pub(super) fn at(&mut self, loc: &Loc) -> DILocation<'c> {
        let (info, kernel) = (&self.info, self.kernel.as_debug_info_scope());
        let scope = match loc.is_known() {
            true => *self.files.entry(Arc::clone(&loc.file)).or_insert_with(|| {
                let file = info.create_file(&loc.file, "");
                let block = info.create_lexical_block(kernel, file, 0, 0);
                block.as_debug_info_scope()
            }),
            false => kernel,
        };
        let column = loc.column;
        info.create_debug_location(self.context, loc.line, column, scope, None)
    }
}

/// PTX with its lines and without what only a debugger reads, for which the assembler would optimise less.
pub(super) fn without_sections(text: &str) -> String {
    let code = text.split("\t.section\t").next().unwrap_or_default();
    let lines = code
        .lines()
        .map(|line| match line.strip_prefix(".target ") {
            Some(target) => format!(".target {}\n", target.trim_end_matches(", debug")),
            None => format!("{line}\n"),
        });
    lines.collect()
}
