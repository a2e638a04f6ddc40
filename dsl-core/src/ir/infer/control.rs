//! Type rules of ops that own regions.

use super::expect::Rules;
use crate::ir::{Axis, MAX_ELEMENTS, Region, Type, Value, op};

impl Rules<'_> {
    /// What the region yields, in the shape of the sources.
    pub(super) fn map(self, op: &op::Map) -> Result<Vec<Type>, String> {
        let sources = self.types(&op.sources);
        let Some(first) = sources.first() else {
            return Err("`map` needs a source".to_string());
        };
        let mut elements = Vec::new();
        for &ty in &sources {
            self.expect("a source", ty, ty.with_shape(first.shape))?;
            elements.push(Type::scalar(self.number(ty)?));
        }
        let parameters = self.types(&self.func.region(op.body).parameters);
        if parameters != elements {
            return Err(format!(
                "region of `map` takes {parameters:?}, expected {elements:?}"
            ));
        }
        let most = MAX_ELEMENTS / 2;
        if first.shape.elements() > most {
            return Err(format!(
                "`map` of `{first}`, expected at most {most} elements"
            ));
        }
        self.without_tiles(op.body)?;
        let yielded = self.types(self.func.yielded(op.body));
        let numbers = yielded.iter().map(|&ty| {
            if ty.is_poison() {
                return Ok(ty);
            }
            self.number(ty).map(|_| ty.with_shape(first.shape))
        });
        numbers.collect()
    }

    /// That a region has no tile.
    fn without_tiles(self, region: Region) -> Result<(), String> {
        let mut tile = None;
        self.func.walk(region, &mut |inst| {
            let data = self.func.inst(inst);
            let operands = data.op.operands().into_iter();
            let mut values = operands.chain(data.results.iter().copied());
            if values.any(|value| !self.ty(value).is_scalar() && !self.ty(value).is_poison()) {
                tile.get_or_insert(data.op.mnemonic());
            }
        });
        let error = |name| {
            format!(
                "`{}` works on one element at a time, and `{name}` on tiles",
                self.name()
            )
        };
        tile.map_or(Ok(()), |name| Err(error(name)))
    }

    /// The sources without the axis.
    pub(super) fn reduce(self, op: &op::Reduce) -> Result<Vec<Type>, String> {
        self.combined(&op.sources, op.axis, op.combine)?;
        let reduced = op.sources.iter().map(|&source| {
            let ty = self.ty(source);
            ty.with_shape(ty.shape.without(op.axis.index()))
        });
        Ok(reduced.collect())
    }

    /// The types of the sources.
    pub(super) fn scan(self, op: &op::Scan) -> Result<Vec<Type>, String> {
        self.combined(&op.sources, op.axis, op.combine)?;
        Ok(self.types(&op.sources))
    }

    /// What `reduce` and `scan` ask of their sources, axis and combiner.
    fn combined(self, sources: &[Value], axis: Axis, combine: Region) -> Result<(), String> {
        let name = self.name();
        let sources = self.types(sources);
        let Some(first) = sources.first() else {
            return Err(format!("`{name}` needs a source"));
        };
        if axis.index() >= first.shape.rank() {
            return Err(format!("axis {} is out of range for `{first}`", axis.0));
        }
        let mut elements = Vec::new();
        for &ty in &sources {
            self.expect("a source", ty, ty.with_shape(first.shape))?;
            elements.push(Type::scalar(self.number(ty)?));
        }
        self.combiner(combine, &elements)
    }

    /// That a region combines elements of these types.
    pub(super) fn combiner(self, combine: Region, elements: &[Type]) -> Result<(), String> {
        let parameters = self.types(&self.func.region(combine).parameters);
        let expected = [elements, elements].concat();
        if parameters != expected {
            return Err(format!(
                "combiner of `{}` takes {parameters:?}, expected {expected:?}",
                self.name()
            ));
        }
        self.yields(combine, elements)
    }

    fn yields(self, region: Region, expected: &[Type]) -> Result<(), String> {
        let found = self.types(self.func.yielded(region));
        let same = found.len() == expected.len()
            && found
                .iter()
                .zip(expected)
                .all(|(a, b)| a == b || a.is_poison() || b.is_poison());
        if same {
            return Ok(());
        }
        Err(format!(
            "a region of `{}` yields {found:?}, expected {expected:?}",
            self.name()
        ))
    }

    /// The types of the carried values.
    pub(super) fn counted_loop(self, op: &op::For) -> Result<Vec<Type>, String> {
        self.expect("lower bound", self.ty(op.lower), Type::INDEX)?;
        self.expect("upper bound", self.ty(op.upper), Type::INDEX)?;
        if op.step < 1 {
            return Err(format!("step `{}` of `for` is not positive", op.step));
        }
        let carried = self.types(&op.init);
        let parameters = self.types(&self.func.region(op.body).parameters);
        let expected = [vec![Type::INDEX], carried.clone()].concat();
        if parameters != expected {
            return Err(format!(
                "body of `for` takes {parameters:?}, expected {expected:?}"
            ));
        }
        self.yields(op.body, &carried)?;
        Ok(carried)
    }

    /// The types of the carried values.
    pub(super) fn while_loop(self, op: &op::While) -> Result<Vec<Type>, String> {
        let carried = self.types(&op.init);
        for region in [op.before, op.body] {
            let parameters = self.types(&self.func.region(region).parameters);
            if parameters != carried {
                return Err(format!(
                    "a region of `while` takes {parameters:?}, expected {carried:?}"
                ));
            }
        }
        let tested = [vec![Type::BOOL], carried.clone()].concat();
        self.yields(op.before, &tested)?;
        self.yields(op.body, &carried)?;
        Ok(carried)
    }

    /// The types that the first region yields.
    pub(super) fn branch(self, op: &op::If) -> Result<Vec<Type>, String> {
        self.expect("condition", self.ty(op.condition), Type::BOOL)?;
        for region in [op.on_true, op.on_false] {
            if !self.func.region(region).parameters.is_empty() {
                return Err("a region of `if` takes no parameters".to_string());
            }
        }
        let types = self.types(self.func.yielded(op.on_true));
        self.yields(op.on_false, &types)?;
        Ok(types)
    }
}
