//! Random numbers that depend on a seed alone: SplitMix64.

/// By how much the state moves from number to number: 2^64 through the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream with number `index` of this seed; streams of one seed have nothing in common.
    pub fn stream(seed: u64, index: u64) -> Self {
        let mut random = Self::new(seed ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self::new(random.bits())
    }

    /// The stream without its next `count` numbers.
    pub fn skip(self, count: u64) -> Self {
        let passed = count.wrapping_mul(STEP);
        Self::new(self.state.wrapping_add(passed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.bits()) * bound as u128;
        (product >> 64) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(usize::try_from(high - low + 1).unwrap_or(1)) as i64
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let found = [0; 3].map(|_| random.bits());
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(found, published);
        assert_eq!(Random::new(1_234_567).skip(2).bits(), published[2]);
    }
}
