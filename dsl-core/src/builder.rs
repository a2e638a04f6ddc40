//! Appends instructions to a function and collects what is wrong with them.

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::ir::infer::{infer, result_count};
use crate::ir::{
    Access, Approximate, Axis, BinaryOp, CompareOp, DType, Direction, Func, Function, Inst,
    Literal, Op, Order, Parameter, RawOp, Region, Shape, Space, Stage, TernaryOp, Type, UnaryOp,
    Value, most_depth, op,
};

/// Appends instructions at the end of the current region.
///
/// A wrong instruction is recorded as a [`Diagnostic`] at the current location and gives poisoned
/// results, so that all errors come at once; [`Builder::finish`] returns them.
#[derive(Debug)]
pub struct Builder {
    func: Func,
    region: Region,
    loc: Loc,
    diagnostics: Diagnostics,
    /// How many regions of this builder are around each that it has made.
    depths: BTreeMap<Region, usize>,
}

impl Builder {
    /// A builder of an empty function.
    pub fn new(name: &str, stage: Stage) -> Self {
        Self::resume(Func::new(name, stage))
    }

    /// A builder that appends to the body of `func`.
    pub fn resume(func: Func) -> Self {
        let region = func.body();
        Self {
            func,
            region,
            loc: Loc::none(),
            diagnostics: Diagnostics::new(),
            depths: BTreeMap::new(),
        }
    }

    /// The function so far.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The function so far, to change.
    pub fn func_mut(&mut self) -> &mut Func {
        &mut self.func
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Type {
        self.func.ty(value)
    }

    /// The location that new instructions get.
    pub fn loc(&self) -> &Loc {
        &self.loc
    }

    /// Sets the location that new instructions get.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// Records an error.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Records an error at the current location.
    pub fn error(&mut self, message: impl Into<String>) {
        self.diagnostics.error(&self.loc, message);
    }

    /// The errors so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The function, or all errors.
    pub fn finish(self) -> Result<Func, Diagnostics> {
        self.diagnostics.into_result(self.func)
    }

    /// Adds a parameter of the function.
    pub fn parameter(&mut self, parameter: Parameter, ty: Type) -> Value {
        self.func.add_parameter(parameter, ty)
    }

    /// Adds a pointer parameter.
    pub fn pointer_parameter(&mut self, name: &str, dtype: DType, access: Access) -> Value {
        self.parameter(
            Parameter::new(name, access),
            Type::pointer(dtype, Space::Global),
        )
    }

    /// Adds a scalar parameter.
    pub fn scalar_parameter(&mut self, name: &str, dtype: DType) -> Value {
        self.parameter(Parameter::new(name, Access::Read), Type::scalar(dtype))
    }

    /// The region that new instructions go to.
    pub fn region(&self) -> Region {
        self.region
    }

    /// Sends new instructions to `region`; returns the region they went to before.
    pub fn enter(&mut self, region: Region) -> Region {
        std::mem::replace(&mut self.region, region)
    }

    /// A new region with parameters of these types, for an op in the current region.
    pub fn new_region(&mut self, parameters: &[Type]) -> Region {
        let region = self.func.add_region();
        let depth = self.depths.get(&self.region).map_or(1, |depth| depth + 1);
        self.depths.insert(region, depth);
        let most = most_depth(self.func.stage);
        if depth == most + 1 {
            self.error(format!("regions nest more than {most} deep"));
        }
        for &ty in parameters {
            self.func.add_region_parameter(region, ty);
        }
        region
    }

    /// The parameters of a region.
    pub fn parameters(&self, region: Region) -> Vec<Value> {
        self.func.region(region).parameters.clone()
    }

    /// A new region whose instructions `fill` appends; it gets the parameters and returns what
    /// the region yields.
    pub fn region_with(
        &mut self,
        parameters: &[Type],
        fill: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Region {
        let region = self.new_region(parameters);
        let outer = self.enter(region);
        let values = self.parameters(region);
        let yielded = fill(self, &values);
        self.emit(Op::Yield(op::Yield { values: yielded }), &[]);
        self.enter(outer);
        region
    }

    /// Appends an instruction. `declared` are the result types of ops that need them stated.
    pub fn emit(&mut self, op: Op, declared: &[Type]) -> Inst {
        let types = match infer(&self.func, &op, declared) {
            Ok(types) => types,
            Err(message) => {
                self.error(message);
                vec![Type::POISON; result_count(&op, declared)]
            }
        };
        let inst = self.func.add_inst(op, &types, self.loc.clone());
        self.func.region_mut(self.region).insts.push(inst);
        inst
    }

    /// Appends an instruction without checking it: for passes that move verified instructions.
    pub fn emit_unchecked(&mut self, op: Op, types: &[Type]) -> Inst {
        let inst = self.func.add_inst(op, types, self.loc.clone());
        self.func.region_mut(self.region).insts.push(inst);
        inst
    }

    /// The results of an instruction.
    pub fn results(&self, inst: Inst) -> &[Value] {
        &self.func.inst(inst).results
    }

    /// Appends an op with one result whose type follows from its operands.
    pub fn value(&mut self, op: Op) -> Value {
        let inst = self.emit(op, &[]);
        self.func.inst(inst).results[0]
    }

    /// Appends an op with one result of a stated type.
    pub fn declared(&mut self, op: Op, ty: Type) -> Value {
        let inst = self.emit(op, &[ty]);
        self.func.inst(inst).results[0]
    }

    /// A value that was already reported as wrong.
    pub fn poison(&mut self) -> Value {
        let op = Op::Constant(op::Constant {
            value: Literal::from_bits(DType::Bool, 0),
        });
        let inst = self.func.add_inst(op, &[Type::POISON], self.loc.clone());
        self.func.region_mut(self.region).insts.push(inst);
        self.func.inst(inst).results[0]
    }

    /// A scalar, tile or vector filled with `literal`.
    pub fn filled(&mut self, literal: Literal, shape: Shape) -> Value {
        self.declared(
            Op::Constant(op::Constant { value: literal }),
            Type::tile(literal.dtype, shape),
        )
    }

    /// A value like `like` in type, filled with the number nearest to `value`.
    pub fn constant_like(&mut self, like: Value, value: f64) -> Value {
        let ty = self.ty(like);
        match ty.dtype() {
            Some(dtype) => self.filled(Literal::from_f64(dtype, value), ty.shape),
            None => self.poison(),
        }
    }

    /// A value of type `dtype` and the shape of `like`, filled with these bits.
    pub fn bits_like(&mut self, like: Value, dtype: DType, bits: u64) -> Value {
        let shape = self.ty(like).shape;
        self.filled(Literal::from_bits(dtype, bits), shape)
    }

    /// A scalar index.
    pub fn index(&mut self, value: i64) -> Value {
        self.filled(Literal::from_bits(DType::I64, value as u64), Shape::SCALAR)
    }

    /// Integers as indices: the nearest, where there is none of that value.
    pub fn nearest_index(&mut self, x: Value) -> Value {
        let mut x = x;
        if self.ty(x).dtype() == Some(DType::U64) {
            let greatest = self.bits_like(x, DType::U64, i64::MAX.cast_unsigned());
            x = self.binary(BinaryOp::Minimum, x, greatest);
        }
        self.cast(x, DType::I64)
    }

    /// A scalar `i32`.
    pub fn int32(&mut self, value: i32) -> Value {
        self.filled(
            Literal::from_bits(DType::I32, value as u32 as u64),
            Shape::SCALAR,
        )
    }

    /// A scalar `bool`.
    pub fn boolean(&mut self, value: bool) -> Value {
        self.filled(
            Literal::from_bits(DType::Bool, u64::from(value)),
            Shape::SCALAR,
        )
    }

    /// An elementwise op of one operand.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        self.value(Op::Unary(op::Unary { op, x }))
    }

    /// An elementwise function that has a definition.
    pub fn function(&mut self, op: Function, x: Value) -> Value {
        self.value(Op::Function(op::Function { op, x }))
    }

    /// An elementwise function of the device's own.
    pub fn approximate(&mut self, op: Approximate, x: Value) -> Value {
        self.value(Op::Approximate(op::Approximate { op, x }))
    }

    /// An elementwise op of two operands.
    pub fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Value {
        self.value(Op::Binary(op::Binary { op, lhs, rhs }))
    }

    /// An elementwise op of two operands, as the machine has it.
    pub fn raw(&mut self, op: RawOp, lhs: Value, rhs: Value) -> Value {
        self.value(Op::Raw(op::Raw { op, lhs, rhs }))
    }

    /// An elementwise comparison.
    pub fn compare(&mut self, op: CompareOp, lhs: Value, rhs: Value) -> Value {
        self.value(Op::Compare(op::Compare { op, lhs, rhs }))
    }

    /// An elementwise op of three operands.
    pub fn ternary(&mut self, op: TernaryOp, a: Value, b: Value, c: Value) -> Value {
        self.value(Op::Ternary(op::Ternary { op, a, b, c }))
    }

    /// `on_true` where the condition holds, else `on_false`.
    pub fn select(&mut self, condition: Value, on_true: Value, on_false: Value) -> Value {
        self.value(Op::Select(op::Select {
            condition,
            on_true,
            on_false,
        }))
    }

    /// Turns -0 into +0.
    pub fn positive_zero(&mut self, x: Value) -> Value {
        match self.ty(x).dtype() {
            Some(dtype) if dtype.is_float() => {
                let zero = self.constant_like(x, 0.0);
                self.add(x, zero)
            }
            Some(_) | None => x,
        }
    }

    /// Converts each number.
    pub fn cast(&mut self, x: Value, dtype: DType) -> Value {
        let ty = self.ty(x);
        if ty.dtype() == Some(dtype) {
            return x;
        }
        self.declared(Op::Cast(op::Cast { x }), ty.with_dtype(dtype))
    }

    /// Reinterprets the bits of each number.
    pub fn bitcast(&mut self, x: Value, dtype: DType) -> Value {
        let ty = self.ty(x).with_dtype(dtype);
        self.declared(Op::Bitcast(op::Bitcast { x }), ty)
    }

    /// Repeats a scalar.
    pub fn splat(&mut self, x: Value, shape: Shape) -> Value {
        if self.ty(x).shape == shape {
            return x;
        }
        let ty = self.ty(x).with_shape(shape);
        self.declared(Op::Splat(op::Splat { x }), ty)
    }

    /// The index along `axis` of each element of a tile (`i64`).
    pub fn index_along(&mut self, axis: usize, shape: Shape) -> Value {
        let end = shape.extent(axis) as i64;
        let mut index = self.value(Op::Arange(op::Arange { start: 0, end }));
        for other in (0..shape.rank()).filter(|&other| other != axis) {
            let axis = Axis(other as u8);
            index = self.value(Op::ExpandDims(op::ExpandDims { x: index, axis }));
        }
        let ty = Type::tile(DType::I64, shape);
        if self.ty(index) == ty {
            return index;
        }
        self.declared(Op::Broadcast(op::Broadcast { x: index }), ty)
    }

    /// The index along `axis` in the narrowest unsigned type that holds it.
    pub fn narrow_index_along(&mut self, axis: usize, shape: Shape) -> Value {
        let dtype = match shape.extent(axis) {
            ..=0x100 => DType::U8,
            0x101..=0x1_0000 => DType::U16,
            _ => DType::U32,
        };
        let index = self.index_along(axis, shape);
        self.cast(index, dtype)
    }

    /// Reduces along an axis; `combine` gets the lower and the higher operand of each source.
    pub fn reduce(
        &mut self,
        sources: &[Value],
        axis: usize,
        order: Order,
        combine: impl FnOnce(&mut Self, &[Value], &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let combine = self.combiner(sources, combine);
        let inst = self.emit(
            Op::Reduce(op::Reduce {
                sources: sources.to_vec(),
                axis: Axis(u8::try_from(axis).unwrap_or(u8::MAX)),
                order,
                combine,
            }),
            &[],
        );
        self.func.inst(inst).results.clone()
    }

    /// Scans along an axis; `combine` gets the lower and the higher operand of each source.
    pub fn scan(
        &mut self,
        sources: &[Value],
        axis: usize,
        (order, direction): (Order, Direction),
        combine: impl FnOnce(&mut Self, &[Value], &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let combine = self.combiner(sources, combine);
        let inst = self.emit(
            Op::Scan(op::Scan {
                sources: sources.to_vec(),
                axis: Axis(u8::try_from(axis).unwrap_or(u8::MAX)),
                order,
                direction,
                combine,
            }),
            &[],
        );
        self.func.inst(inst).results.clone()
    }

    fn combiner(
        &mut self,
        sources: &[Value],
        combine: impl FnOnce(&mut Self, &[Value], &[Value]) -> Vec<Value>,
    ) -> Region {
        let elements: Vec<Type> = sources
            .iter()
            .map(|&source| self.ty(source).with_shape(Shape::SCALAR))
            .collect();
        self.combiner_of(&elements, combine)
    }

    /// A region that combines elements of these types: the lower ones, then the higher ones.
    pub fn combiner_of(
        &mut self,
        elements: &[Type],
        combine: impl FnOnce(&mut Self, &[Value], &[Value]) -> Vec<Value>,
    ) -> Region {
        let parameters = [elements, elements].concat();
        self.region_with(&parameters, |builder, values| {
            let (lower, higher) = values.split_at(values.len() / 2);
            combine(builder, lower, higher)
        })
    }

    /// A counted loop; `body` gets the index and the carried values and returns the next ones.
    pub fn for_loop(
        &mut self,
        bounds: (Value, Value),
        step: i64,
        init: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let carried = init.iter().map(|&value| self.ty(value));
        let parameters: Vec<Type> = std::iter::once(Type::INDEX).chain(carried).collect();
        let region = self.region_with(&parameters, |builder, values| {
            body(builder, values[0], &values[1..])
        });
        let (lower, upper) = bounds;
        let op = Op::For(op::For {
            lower,
            upper,
            init: init.to_vec(),
            step,
            stages: 1,
            body: region,
        });
        let inst = self.emit(op, &[]);
        self.func.inst(inst).results.clone()
    }

    /// One of two alternatives, each returning values of the same types.
    pub fn if_else(
        &mut self,
        condition: Value,
        on_true: impl FnOnce(&mut Self) -> Vec<Value>,
        on_false: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let on_true = self.region_with(&[], |builder, _| on_true(builder));
        let on_false = self.region_with(&[], |builder, _| on_false(builder));
        let inst = self.emit(
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            }),
            &[],
        );
        self.func.inst(inst).results.clone()
    }
}

/// Methods of the elementwise families, named as their ops.
macro_rules! define_methods {
    ($($(#[doc = $family_doc:literal])* $Family:ident $Variant:ident $fields:tt { $($row:tt)* })*) => {
        $(define_methods! { @family $Family $Variant $fields $($row)* })*
    };
    (@family $Family:ident $Variant:ident $fields:tt
        $($(#[doc = $doc:literal])* $Op:ident $mnemonic:literal $method:ident $accepts:ident $surface:ident
            $(= $($meaning:ident)::+)?;)*) => {
        $(define_methods! { @method $Family $Variant $fields [$(#[doc = $doc])*] $Op $method })*
    };
    (@method $Family:ident $Variant:ident { $($field:ident),* } [$(#[doc = $doc:literal])*] $Op:ident $method:ident) => {
        impl Builder {
            $(#[doc = $doc])*
            pub fn $method(&mut self, $($field: Value),*) -> Value {
                self.value(Op::$Variant(op::$Variant { op: $Family::$Op, $($field),* }))
            }
        }
    };
}
crate::ir::scalar_ops::for_each_scalar_family!(define_methods);
crate::ir::functions::for_each_function_family!(define_methods);
