//! Writes what a launch knows into the function that it runs.

use crate::diagnostic::Loc;
use crate::facts::{Facts, Known};
use crate::ir::{Func, Literal, Op, op};

/// Writes what is known of the arguments into the function: divisors into the parameters, a constant
/// for the uses of a parameter that is 1.
pub fn specialise(func: &mut Func, facts: &Facts) {
    for (index, &known) in facts.arguments.iter().enumerate() {
        let Some(parameter) = func.parameters.get_mut(index) else {
            return;
        };
        match known {
            Known::Divisor(divisor) => parameter.divisor = parameter.divisor.max(divisor),
            Known::One => replace_by_one(func, index),
        }
    }
}

fn replace_by_one(func: &mut Func, parameter: usize) {
    let value = func.arguments()[parameter];
    let Some(literal) = func
        .ty(value)
        .dtype()
        .and_then(|dtype| Literal::from_integer(dtype, 1))
    else {
        return;
    };
    let uses = func.all_insts();
    let ty = func.ty(value);
    let constant = func.add_inst(
        Op::Constant(op::Constant { value: literal }),
        &[ty],
        Loc::none(),
    );
    let one = func.inst(constant).results[0];
    for inst in uses {
        let op = &mut func.inst_mut(inst).op;
        op.map_operands(&mut |operand| if operand == value { one } else { operand });
    }
    let body = func.body();
    func.region_mut(body).insts.insert(0, constant);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tidy;
    use crate::verify;

    #[test]
    fn a_parameter_that_is_one_becomes_a_constant() {
        let source = "func @f block (%x: ptr<f32> write, %stride: i64, %n: i64) {
            %i = arange start=0, end=4 : tile<4xi64>
            %s = splat %stride : tile<4xi64>
            %o = mul %i, %s : tile<4xi64>
            %v = load %x, %o : tile<4xf32>
            store %x, %o, %v
          }";
        let mut func = crate::text::parse(source, "test.bir").expect("parses");
        let arguments = vec![Known::Divisor(16), Known::One, Known::Divisor(1)];
        let facts = Facts {
            arguments,
            ..Facts::default()
        };
        specialise(&mut func, &facts);
        let mut func = verify::block(func).expect("verifies").into_inner();
        assert_eq!(func.parameters[0].divisor, 16);
        tidy(&mut func);
        assert!(!func.to_string().contains("mul"), "{func}");
    }
}
