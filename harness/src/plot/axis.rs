//! An axis by powers of a number.

/// Powers of a number along an axis.
pub(super) struct Scale {
    base: f64,
    least: f64,
    most: f64,
    pixels: [f64; 2],
}

impl Scale {
    /// From the power below all numbers to the one above.
    pub(super) fn of(base: f64, numbers: &[f64], pixels: [f64; 2]) -> Self {
        // A power's own logarithm may be beside its exponent by a rounding.
        let logs = numbers
            .iter()
            .map(|number| (number.log(base) * 1e9).round() / 1e9);
        let least = logs.clone().fold(f64::INFINITY, f64::min).floor();
        let most = logs.fold(f64::NEG_INFINITY, f64::max).ceil();
        Self {
            base,
            least,
            most: most.max(least + 1.0),
            pixels,
        }
    }

    /// The pixel of a number.
    pub(super) fn place(&self, number: f64) -> f64 {
        let share = (number.log(self.base) - self.least) / (self.most - self.least);
        self.pixels[0] + share * (self.pixels[1] - self.pixels[0])
    }

    /// The power at the begin.
    pub(super) fn first(&self) -> f64 {
        self.base.powf(self.least)
    }

    /// The power at the end.
    pub(super) fn last(&self) -> f64 {
        self.base.powf(self.most)
    }

    /// All powers.
    pub(super) fn marks(&self) -> impl Iterator<Item = f64> {
        let (least, most) = (self.least as i32, self.most as i32);
        (least..=most).map(|power| self.base.powi(power))
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn powers_end_an_axis_where_they_are() {
        for (base, power) in [(10.0, 3), (10.0, 6), (10.0, -1), (2.0, 29)] {
            let ends = [f64::powi(base, power), f64::powi(base, power + 1)];
            let marks: Vec<f64> = Scale::of(base, &ends, [0.0, 1.0]).marks().collect();
            assert_eq!(marks, ends, "{base}^{power}");
        }
    }
}
