//! Writes what a launch knows into the function that it runs.

use crate::diagnostic::Loc;
use crate::facts::{Facts, Known, Within};
use crate::ir::{Func, Literal, Op, op};

/// Writes what is known of the arguments into the function: divisors and ranges into the parameters, a constant
/// for the uses of a parameter that can be one number alone.
pub fn specialise(func: &mut Func, facts: &Facts) {
    for (index, &known) in facts.arguments.iter().enumerate() {
        let Some(parameter) = func.parameters.get_mut(index) else {
            return;
        };
        match known {
            Known::Divisor(divisor) => parameter.divisor = parameter.divisor.max(divisor),
            Known::One => replace_by(func, index, 1),
        }
    }
    for &Within {
        parameter: index,
        least,
        most,
    } in &facts.within
    {
        if let Some(parameter) = func.parameters.get_mut(index) {
            parameter.within = Some([least, most]);
            if least == most {
                replace_by(func, index, least);
            }
        }
    }
}

fn replace_by(func: &mut Func, parameter: usize, number: i64) {
    let value = func.arguments()[parameter];
    let Some(literal) = func
        .ty(value)
        .dtype()
        .and_then(|dtype| Literal::from_integer(dtype, number.into()))
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
    let number = func.inst(constant).results[0];
    for inst in uses {
        let op = &mut func.inst_mut(inst).op;
        op.map_operands(&mut |operand| if operand == value { number } else { operand });
    }
    let body = func.body();
    func.region_mut(body).insts.insert(0, constant);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tidy;
    use crate::verify;

    const SCALED: &str = "func @f block (%x: ptr<f32> write, %stride: i64, %n: i64) {
        %i = arange start=0, end=4 : tile<4xi64>
        %s = splat %stride : tile<4xi64>
        %o = mul %i, %s : tile<4xi64>
        %v = load %x, %o : tile<4xf32>
        store %x, %o, %v
      }";

    #[test]
    fn a_parameter_that_is_one_becomes_a_constant() {
        let mut func = crate::text::parse(SCALED, "test.bir").expect("parses");
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

    #[test]
    fn what_an_integer_lies_in_is_written_to_its_parameter() {
        let mut func = crate::text::parse(SCALED, "test.bir").expect("parses");
        let within = |parameter, least, most| Within {
            parameter,
            least,
            most,
        };
        let facts = Facts {
            within: vec![within(1, 7, 7), within(2, -3, 4), within(9, 0, 0)],
            ..Facts::default()
        };
        specialise(&mut func, &facts);
        assert_eq!(func.parameters[2].within, Some([-3, 4]));
        let text = verify::block(func).expect("verifies").to_string();
        assert!(
            text.contains("value=i64(7)") && text.contains("least=-3 most=4"),
            "{text}"
        );
    }
}
