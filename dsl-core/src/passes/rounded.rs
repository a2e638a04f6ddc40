//! Short forms of functions whose arguments follow from a `bf16` number alone, and whose results end as one.
//!
//! Whatever is computed between the two, there are 65,536 arguments: a form is taken where it gives the bits of the
//! definition at each, with the device's approximate functions anywhere within what is promised of them.

use std::collections::{BTreeMap, BTreeSet};

use super::float_range;
use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::entity::EntityMap;
use crate::ir::numbers::filling;
use crate::ir::op::Elementwise;
use crate::ir::{DType, Func, Inst, Literal, Op, Type, Value, op};
use crate::semantics::derived::{Definition, Domain, define, define_rounded, is_rounded};

/// The type of the argument, and of what the result is rounded to.
const DTYPE: DType = DType::BF16;

/// The most instructions from the argument to the rounding.
const MOST_STEPS: usize = 32;

/// Replaces functions by short forms in the same bits, for machines with approximate functions.
pub fn shorten_rounded(func: &mut Func) {
    widen(func);
    let insts = func.all_insts();
    let is_function = |inst: &Inst| matches!(func.op(*inst), Op::Function(_));
    if !insts.iter().any(is_function) {
        return;
    }
    let mut users = EntityMap::filled(func.value_count(), Vec::new());
    for &inst in &insts {
        let op = func.op(inst);
        op.visit_operands(&mut |value| users[value].push(inst));
    }
    let reading = Reading {
        func,
        definitions: func.definitions(),
        users,
        domains: float_range::domains(func),
    };
    let cones = insts.iter().filter_map(|&inst| reading.cone(inst));
    let proven = cones.filter(|cone| reading.is_proven(cone));
    let functions = proven.flat_map(|cone| cone.steps);
    let functions = functions.filter_map(|inst| Some((inst, reading.short_domain(inst)?)));
    let functions: BTreeMap<Inst, Domain> = functions.collect();
    rewrite(func, &mut |rewriter, inst| {
        let Op::Function(op::Function { op, x }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let short = define_rounded(&mut rewriter.builder, op, x, *functions.get(&inst)?);
        short.map(|value| vec![value])
    });
}

/// A function of narrow numbers is that of `f32`, and one rounding.
fn widen(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let Op::Function(op::Function { op, x }) = *builder.func().op(inst) else {
            return None;
        };
        if builder.ty(x).dtype() != Some(DTYPE) {
            return None;
        }
        let wide = builder.cast(x, DType::F32);
        let result = builder.function(op, wide);
        Some(vec![builder.cast(result, DTYPE)])
    });
}

/// What is computed from one number to its rounding.
#[derive(Default)]
struct Cone {
    /// The number, before it is widened.
    argument: Option<Value>,
    /// Operands first, the rounding last.
    steps: Vec<Inst>,
    /// All that were met, each once.
    met: BTreeSet<Inst>,
}

struct Reading<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    users: EntityMap<Value, Vec<Inst>>,
    domains: EntityMap<Value, Domain>,
}

impl Reading<'_> {
    fn filling(&self, value: Value) -> Option<Literal> {
        filling(value, |value| {
            self.definitions[value].map(|inst| self.func.op(inst))
        })
    }

    fn result(&self, inst: Inst) -> Value {
        self.func.inst(inst).results[0]
    }

    /// The domain of a function that has a short form there.
    fn short_domain(&self, inst: Inst) -> Option<Domain> {
        let Op::Function(op::Function { op, x }) = *self.func.op(inst) else {
            return None;
        };
        let domain = self.domains[x];
        is_rounded(op, domain).then_some(domain)
    }

    /// What ends in the rounding `root`, if it follows from one number alone, and nothing else reads what functions with
    /// short forms lead to.
    fn cone(&self, root: Inst) -> Option<Cone> {
        let Op::Cast(op::Cast { x }) = *self.func.op(root) else {
            return None;
        };
        let ends = [x, self.result(root)].map(|value| self.func.ty(value).dtype());
        if ends != [Some(DType::F32), Some(DTYPE)] {
            return None;
        }
        let mut cone = Cone::default();
        self.enter(root, &mut cone)?;
        let mut short = BTreeSet::new();
        for &inst in &cone.steps {
            let operands = self.func.op(inst).operands();
            if self.short_domain(inst).is_some() || operands.iter().any(|it| short.contains(it)) {
                short.insert(self.result(inst));
            }
        }
        let is_read = |value: &Value| self.users[*value].iter().any(|it| !cone.met.contains(it));
        let ends_here = |value: &Value| *value == self.result(root) || !is_read(value);
        (!short.is_empty() && short.iter().all(ends_here)).then_some(cone)
    }

    fn enter(&self, inst: Inst, cone: &mut Cone) -> Option<()> {
        if !cone.met.insert(inst) {
            return Some(());
        }
        if cone.met.len() > MOST_STEPS {
            return None;
        }
        let op = self.func.op(inst);
        if let Op::Cast(op::Cast { x }) = *op
            && self.func.ty(x).dtype() == Some(DTYPE)
        {
            let argument = *cone.argument.get_or_insert(x);
            cone.steps.push(inst);
            return (argument == x).then_some(());
        }
        let elementwise = op.elementwise();
        let is_plain = elementwise.is_some_and(|op| {
            !matches!(op, Elementwise::InlinePtx(_) | Elementwise::Approximate(_))
        });
        if !is_plain && !matches!(op, Op::Function(_)) {
            return None;
        }
        for value in op.operands() {
            if self.filling(value).is_none() {
                self.enter(self.definitions[value]?, cone)?;
            }
        }
        cone.steps.push(inst);
        Some(())
    }

    /// Whether all short forms together give the bits of the definitions.
    fn is_proven(&self, cone: &Cone) -> bool {
        let of = |short| {
            Definition::of("rounded", DTYPE, &|builder, x| {
                self.copied(builder, x, cone, short)
            })
        };
        of(true).is_certainly(&of(false))
    }

    /// Appends all of it for the scalar `x`, and returns the result.
    fn copied(&self, builder: &mut Builder, x: Value, cone: &Cone, short: bool) -> Value {
        let mut copies: BTreeMap<Value, Value> =
            cone.argument.map(|it| (it, x)).into_iter().collect();
        let mut last = x;
        for &inst in &cone.steps {
            let mut op = self.func.op(inst).clone();
            op.map_operands(
                &mut |value| match (copies.get(&value), self.filling(value)) {
                    (Some(&copy), _) => copy,
                    (None, Some(literal)) => {
                        builder.filled(literal, Type::scalar(literal.dtype).shape)
                    }
                    (None, None) => value,
                },
            );
            let result = self.result(inst);
            last = match (op, self.short_domain(inst)) {
                (Op::Function(op::Function { op, x }), domain) => {
                    let form = domain.filter(|_| short);
                    let form = form.and_then(|domain| define_rounded(builder, op, x, domain));
                    form.unwrap_or_else(|| define(builder, op, x, Domain::ANYTHING))
                }
                (op, _) => {
                    let ty = self.func.ty(result).dtype().map(Type::scalar);
                    let ty = ty.unwrap_or(Type::POISON);
                    let copy = builder.emit_unchecked(op, &[ty]);
                    builder.results(copy)[0]
                }
            };
            copies.insert(result, last);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::shorten_rounded;
    use crate::text::parse;
    use crate::verify;

    /// How many functions are left of what `body` makes of `%x`, and of how many the device's own take the place.
    fn functions(body: &str) -> (usize, usize) {
        let source = format!(
            "func @f block (%in: ptr<bf16>, %out: ptr<bf16> write, %scale: f32) {{
               %i = arange start=0, end=8 : tile<8xi64>
               %narrow = load %in, %i : tile<8xbf16>
               %x = cast %narrow : tile<8xf32>
               %half = constant value=f32(0.5) : tile<8xf32>
               %one = constant value=f32(1.0) : tile<8xf32>
               %zero = constant value=f32(0.0) : tile<8xf32>
               {body}
               store %out, %i, %r
             }}"
        );
        let func = verify::block(parse(&source, "test.bir").expect("parses")).expect("is valid");
        let mut func = func.into_inner();
        shorten_rounded(&mut func);
        let func = verify::block(func).expect("is valid after");
        let text = func.to_string();
        let names = ["sigmoid", "tanh", "erf", "log1p", "exp"];
        let count = |name: &str| text.matches(&format!("= {name} ")).count();
        let own = count("approx_normal_exp2") + count("approx_normal_reciprocal");
        (names.into_iter().map(count).sum(), own)
    }

    const SILU: &str = "%s = sigmoid %x : tile<8xf32>\n %v = mul %x, %s : tile<8xf32>";
    const ROUNDED: &str = "%r = cast %v : tile<8xbf16>";

    #[test]
    fn activations_are_short() {
        for function in ["sigmoid", "tanh"] {
            let plain = format!("%v = {function} %x : tile<8xf32>\n {ROUNDED}");
            assert_eq!(functions(&plain), (0, 2), "{function}");
            let narrow = format!("%r = {function} %narrow : tile<8xbf16>");
            assert_eq!(functions(&narrow), (0, 2), "{function}");
        }
        let erf = "%r = erf %narrow : tile<8xbf16>";
        assert_eq!(functions(erf), (0, 1));
        assert_eq!(functions(&format!("{SILU}\n {ROUNDED}")), (0, 2));
        let gelu = |inner: &str| {
            format!(
                "{inner}
                 %a = add %t, %one : tile<8xf32>
                 %h = mul %x, %half : tile<8xf32>
                 %v = mul %h, %a : tile<8xf32>
                 {ROUNDED}"
            )
        };
        let by_erf = "%c = constant value=f32(0.70710677) : tile<8xf32>
             %u = mul %x, %c : tile<8xf32>
             %t = erf %u : tile<8xf32>";
        assert_eq!(functions(&gelu(by_erf)), (0, 1));
        let by_tanh = "%c = constant value=f32(0.044715) : tile<8xf32>
             %d = constant value=f32(0.7978846) : tile<8xf32>
             %cx = mul %c, %x : tile<8xf32>
             %xx = mul %x, %x : tile<8xf32>
             %p = fma %cx, %xx, %x : tile<8xf32>
             %u = mul %p, %d : tile<8xf32>
             %t = tanh %u : tile<8xf32>";
        assert_eq!(functions(&gelu(by_tanh)), (0, 2));
        let softplus = "%m = abs %x : tile<8xf32>
             %n = neg %m : tile<8xf32>
             %e = exp %n : tile<8xf32>
             %l = log1p %e : tile<8xf32>
             %p = maximum %x, %zero : tile<8xf32>
             %v = add %p, %l : tile<8xf32>";
        assert_eq!(functions(&format!("{softplus}\n {ROUNDED}")), (1, 0));
    }

    #[test]
    fn what_no_finite_check_proves_keeps_its_definition() {
        // Two numbers, and one of a launch.
        let other = "%y = load %in, %i : tile<8xbf16>
             %z = cast %y : tile<8xf32>";
        let scaled = "%z = splat %scale : tile<8xf32>";
        for other in [other, scaled] {
            let body = format!("{other}\n {SILU}\n %w = mul %v, %z : tile<8xf32>");
            let body = format!("{body}\n %r = cast %w : tile<8xbf16>");
            assert_eq!(functions(&body), (1, 0), "{other}");
        }
        // Read in f32 too.
        let summed = format!(
            "{SILU}\n {ROUNDED}
             %sum = reduce [%s], axis=0, order=tree (%a: f32, %b: f32) {{
               %c = add %a, %b : f32
               yield [%c]
             }} : f32
             %n = cast %sum : bf16
             %first = constant value=i64(0) : i64
             store %out, %first, %n"
        );
        assert_eq!(functions(&summed), (1, 0));
        // The difference from 1/2 shows digits that the short form lacks.
        let difference = "%s = sigmoid %x : tile<8xf32>
             %v = sub %s, %half : tile<8xf32>";
        assert_eq!(functions(&format!("{difference}\n {ROUNDED}")), (1, 0));
    }
}
