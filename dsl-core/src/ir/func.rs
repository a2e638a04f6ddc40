//! A function: arenas of values, instructions and regions.

use super::linear::LinearLayout;
use super::{Op, Stage, Trait, Type, op};
use crate::diagnostic::Loc;
use crate::entity::{EntityMap, entity};
use crate::target::Schedule;

entity!(
    /// An SSA value.
    Value "%"
);
entity!(
    /// An instruction.
    Inst "inst"
);
entity!(
    /// A list of instructions with parameters.
    Region "region"
);
entity!(
    /// A layout of tiles.
    Layout "#l"
);

/// What a kernel may do with the memory behind a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// Only loads.
    Read,
    /// Loads and stores.
    ReadWrite,
}

/// A parameter of the kernel; its type is that of its value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parameter {
    /// The name in the source.
    pub name: String,
    /// For pointers: what the kernel may do.
    pub access: Access,
    /// A known divisor: bytes of the address of a pointer, or of the value of an integer. The
    /// launch checks it.
    pub divisor: u32,
    /// Of an integer, the least and the greatest that it can be, where that is known. The launch checks it.
    pub within: Option<[i64; 2]>,
    /// Whether the kernel reaches the memory through tiles of tensors only, each of which masks what lies
    /// outside of the tensor, and the launch has shown that these lie in the memory: no access needs a
    /// check. A pass says so, whatever is written here before.
    pub tiled: bool,
}

impl Parameter {
    /// A parameter with nothing known about it.
    pub fn new(name: &str, access: Access) -> Self {
        Self {
            name: name.to_string(),
            access,
            divisor: 1,
            within: None,
            tiled: false,
        }
    }
}

/// The parts of a region.
#[derive(Clone, Default, Debug)]
pub struct RegionData {
    /// Values that the owner hands in.
    pub parameters: Vec<Value>,
    /// Instructions in program order.
    pub insts: Vec<Inst>,
}

/// The parts of an instruction.
#[derive(Clone, Debug)]
pub struct InstData {
    /// What it does.
    pub op: Op,
    /// What it defines.
    pub results: Vec<Value>,
    /// Where it comes from in the source.
    pub loc: Loc,
    /// The number of its access, if passes have numbered them: copies keep it.
    pub site: Option<u32>,
}

/// The most regions inside one another in a kernel that somebody wrote; the body of the function does not count.
pub const MAX_DEPTH: usize = 256;

/// By how much passes and lowerings together nest deeper at most.
const ADDED_DEPTH: usize = 8;

/// The most regions inside one another where a function of this stage is written or made. Passes of the block
/// stage may add to it.
pub fn most_depth(stage: Stage) -> usize {
    match stage {
        Stage::Block => MAX_DEPTH,
        Stage::Schedule | Stage::Lane => MAX_DEPTH + ADDED_DEPTH,
    }
}

/// A kernel in one stage of the IR.
///
/// The arenas may hold instructions and regions that nothing refers to any more; only what the
/// body reaches counts.
#[derive(Clone, Debug)]
pub struct Func {
    /// The kernel's name.
    pub name: String,
    /// The stage.
    pub stage: Stage,
    /// One for each parameter of the body.
    pub parameters: Vec<Parameter>,
    /// Warps of a program that a schedule or lane function is made for; 0 means a CPU worker.
    pub warps: u32,
    /// What is left to those who take a lane function: the fields of the schedule that it keeps.
    pub schedule: Schedule,
    types: EntityMap<Value, Type>,
    layouts: EntityMap<Layout, LinearLayout>,
    /// For each value its layout, if it has one.
    layout_of: EntityMap<Value, Option<Layout>>,
    insts: EntityMap<Inst, InstData>,
    regions: EntityMap<Region, RegionData>,
    body: Region,
}

impl Func {
    /// An empty function.
    pub fn new(name: &str, stage: Stage) -> Self {
        let mut regions = EntityMap::new();
        let body = regions.push(RegionData::default());
        Self {
            name: name.to_string(),
            stage,
            parameters: Vec::new(),
            warps: 0,
            schedule: Schedule::AUTO,
            types: EntityMap::new(),
            layouts: EntityMap::new(),
            layout_of: EntityMap::new(),
            insts: EntityMap::new(),
            regions,
            body,
        }
    }

    /// The region of the whole function; it has no terminator.
    pub fn body(&self) -> Region {
        self.body
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.types[value]
    }

    /// Changes the type of a value, for passes that rewrite in place.
    pub fn set_type(&mut self, value: Value, ty: Type) {
        self.types[value] = ty;
    }

    /// The layout of a tile of the schedule stage; nothing where the tile is made in whatever layout a
    /// use asks for.
    pub fn layout(&self, value: Value) -> Option<Layout> {
        self.layout_of[value]
    }

    /// Changes the layout of a tile.
    pub fn set_layout(&mut self, value: Value, layout: Option<Layout>) {
        self.layout_of[value] = layout;
    }

    /// All layouts, in the order of their references.
    pub fn linears(&self) -> impl Iterator<Item = &LinearLayout> {
        self.layouts.iter().map(|(_, layout)| layout)
    }

    /// What a layout is.
    pub fn linear(&self, layout: Layout) -> &LinearLayout {
        &self.layouts[layout]
    }

    /// The reference of a layout: equal ones have one.
    pub fn intern(&mut self, layout: LinearLayout) -> Layout {
        let mut known = self.layouts.keys();
        match known.find(|&known| self.layouts[known] == layout) {
            Some(known) => known,
            None => self.layouts.push(layout),
        }
    }

    /// A new value of this type.
    fn add_value(&mut self, ty: Type) -> Value {
        self.layout_of.push(None);
        self.types.push(ty)
    }

    /// The number of values ever made: the length of a table indexed by [`Value`].
    pub fn value_count(&self) -> usize {
        self.types.len()
    }

    /// All values ever made, in the order of their making.
    pub fn values(&self) -> impl Iterator<Item = Value> + use<> {
        self.types.keys()
    }

    /// The number of instructions ever made.
    pub fn inst_count(&self) -> usize {
        self.insts.len()
    }

    /// The number of regions ever made.
    pub fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// An instruction.
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.insts[inst]
    }

    /// An instruction, to change.
    pub fn inst_mut(&mut self, inst: Inst) -> &mut InstData {
        &mut self.insts[inst]
    }

    /// The op of an instruction.
    pub fn op(&self, inst: Inst) -> &Op {
        &self.insts[inst].op
    }

    /// A region.
    pub fn region(&self, region: Region) -> &RegionData {
        &self.regions[region]
    }

    /// A region, to change.
    pub fn region_mut(&mut self, region: Region) -> &mut RegionData {
        &mut self.regions[region]
    }

    /// The values of the function's parameters.
    pub fn arguments(&self) -> &[Value] {
        &self.regions[self.body].parameters
    }

    /// The index of the parameter that `value` is.
    pub fn parameter_index(&self, value: Value) -> Option<usize> {
        self.arguments()
            .iter()
            .position(|&argument| argument == value)
    }

    /// The name of an array that the function may write; `None` of one that it only reads.
    pub fn written(&self, base: Value) -> Option<&str> {
        let parameter = self.parameters.get(self.parameter_index(base)?)?;
        (parameter.access != Access::Read).then_some(&parameter.name)
    }

    /// Whether a pointer is to memory of which nothing but tiles that lie in it are accessed.
    pub fn is_tiled(&self, base: Value) -> bool {
        let parameter = self.parameter_index(base);
        parameter.is_some_and(|parameter| self.parameters[parameter].tiled)
    }

    /// Adds a parameter of the function.
    pub fn add_parameter(&mut self, parameter: Parameter, ty: Type) -> Value {
        self.parameters.push(parameter);
        self.add_region_parameter(self.body, ty)
    }

    /// A new region, owned by nothing yet.
    pub fn add_region(&mut self) -> Region {
        self.regions.push(RegionData::default())
    }

    /// Adds a parameter of a region.
    pub fn add_region_parameter(&mut self, region: Region, ty: Type) -> Value {
        let value = self.add_value(ty);
        self.regions[region].parameters.push(value);
        value
    }

    /// A new instruction, in no region yet.
    pub fn add_inst(&mut self, op: Op, types: &[Type], loc: Loc) -> Inst {
        let results = types.iter().map(|&ty| self.add_value(ty)).collect();
        self.insts.push(InstData {
            op,
            results,
            loc,
            site: None,
        })
    }

    /// Adds a result of an instruction.
    pub fn add_result(&mut self, inst: Inst, ty: Type) -> Value {
        let value = self.add_value(ty);
        self.insts[inst].results.push(value);
        value
    }

    /// The values that the terminator of a nested region yields.
    pub fn yielded(&self, region: Region) -> &[Value] {
        let last = self.regions[region].insts.last();
        if let Some(Op::Yield(op::Yield { values })) = last.map(|&inst| &self.insts[inst].op) {
            values
        } else {
            &[]
        }
    }

    /// Calls `visit` with each instruction that `region` reaches, owners before what they own.
    pub fn walk(&self, region: Region, visit: &mut dyn FnMut(Inst)) {
        // A list of what is left and no recursion: functions that nothing has verified nest as deeply
        // as they like.
        let mut open = vec![self.regions[region].insts.iter()];
        while let Some(insts) = open.last_mut() {
            let Some(&inst) = insts.next() else {
                open.pop();
                continue;
            };
            visit(inst);
            let nested = self.insts[inst].op.regions().into_iter().rev();
            open.extend(nested.map(|nested| self.regions[nested].insts.iter()));
        }
    }

    /// All instructions that the body reaches, owners before what they own.
    pub fn all_insts(&self) -> Vec<Inst> {
        let mut insts = Vec::new();
        self.walk(self.body, &mut |inst| insts.push(inst));
        insts
    }

    /// The body and all regions in it, owners before what they own.
    pub fn all_regions(&self) -> Vec<Region> {
        let mut regions = vec![self.body];
        self.walk(self.body, &mut |inst| {
            regions.extend(self.insts[inst].op.regions())
        });
        regions
    }

    /// For each value, the instruction that defines it; parameters have none.
    pub fn definitions(&self) -> EntityMap<Value, Option<Inst>> {
        let mut definitions = EntityMap::filled(self.value_count(), None);
        self.walk(self.body, &mut |inst| {
            for &result in &self.insts[inst].results {
                definitions[result] = Some(inst);
            }
        });
        definitions
    }

    /// Whether `inst` or anything it owns has the property.
    pub fn any(&self, inst: Inst, asked: Trait) -> bool {
        let mut found = self.insts[inst].op.is(asked);
        for region in self.insts[inst].op.regions() {
            self.walk(region, &mut |nested| {
                found |= self.insts[nested].op.is(asked)
            });
        }
        found
    }

    /// Whether `inst` has no effect but its results: it is pure, or control flow over pure
    /// instructions.
    pub fn is_pure(&self, inst: Inst) -> bool {
        let op = &self.insts[inst].op;
        let mut pure = !matches!(op, Op::While(_));
        if op.regions().is_empty() {
            return op.is(Trait::pure);
        }
        for region in op.regions() {
            self.walk(region, &mut |nested| {
                let op = &self.insts[nested].op;
                let owns = !op.regions().is_empty() && !matches!(op, Op::While(_));
                pure &= owns || op.is(Trait::terminator) || op.is(Trait::pure);
            });
        }
        pure
    }
}
