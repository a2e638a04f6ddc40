//! Extents around those of tiles.

use exactile_core::random::Random;

/// What divides an extent: code is made for it, so that problems of one family share theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// A vector of any type does.
    Sixteens,
    /// No power of two does.
    Odd,
    /// Some do, or it is zero.
    Any,
}

impl Class {
    pub(super) fn random(random: &mut Random) -> Self {
        random.pick(&[Self::Sixteens, Self::Odd, Self::Any])
    }

    /// Edges of tiles and their neighbours, ascending.
    fn edges(self) -> &'static [usize] {
        match self {
            Self::Sixteens => &[16, 32, 48, 64, 112, 128, 144, 192, 256, 272, 320],
            Self::Odd => &[1, 7, 13, 31, 63, 65, 97, 127, 129, 193, 255, 257, 331],
            Self::Any => &[0, 2, 8, 24, 40, 72, 100, 136, 200, 250, 264],
        }
    }

    /// An extent: up to `large` where it is to be, and else one at the edges of tiles; zero seldom.
    pub(super) fn extent(self, random: &mut Random, large: Option<usize>) -> usize {
        let edges = self.edges();
        if let Some(large) = large.filter(|&it| it > 320) {
            let extent = random.between(320, large as i64) as usize;
            return match self {
                Self::Sixteens => extent / 16 * 16,
                Self::Odd => extent | 1,
                Self::Any => extent,
            };
        }
        match random.pick(edges) {
            0 if !random.one_in(3) => edges[1],
            extent => extent,
        }
    }

    /// A smaller one, if there is any but zero.
    fn smaller(self, random: &mut Random, than: usize) -> Option<usize> {
        let edges = self.edges().iter().copied();
        let smaller: Vec<usize> = edges.filter(|&it| 0 < it && it < than).collect();
        (!smaller.is_empty()).then(|| random.pick(&smaller))
    }
}

/// Extents whose product is at most `most`: the greatest ones are drawn anew while it is more.
pub(super) fn bounded<const N: usize>(
    random: &mut Random,
    classes: [Class; N],
    most: u64,
) -> [usize; N] {
    // Twice the root, so that some are far from a cube.
    let large = 2.0 * (most as f64).powf(1.0 / N as f64);
    let large = large as usize;
    // Once in six all are large.
    let are_large = random.one_in(6);
    let mut extents = classes.map(|class| {
        let is_large = are_large || random.one_in(8);
        class.extent(random, is_large.then_some(large))
    });
    let mut fixed = [false; N];
    while product(&extents) > most {
        let open = (0..N).filter(|&axis| !fixed[axis]);
        let Some(axis) = open.max_by_key(|&axis| extents[axis]) else {
            break;
        };
        match classes[axis].smaller(random, extents[axis]) {
            Some(extent) => extents[axis] = extent,
            None => fixed[axis] = true,
        }
    }
    extents
}

/// How many elements there are.
pub(super) fn product(extents: &[usize]) -> u64 {
    let all = extents.iter().map(|&extent| extent as u64);
    all.fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use exactile_core::random::Random;

    use super::{Class, bounded, product};

    #[test]
    fn extents_are_bounded_and_of_their_class() {
        let mut random = Random::new(3);
        for most in [1 << 12, 1 << 20, 1 << 33] {
            let mut greatest = 0;
            for _ in 0..500 {
                let classes = [(); 3].map(|()| Class::random(&mut random));
                let extents = bounded(&mut random, classes, most);
                greatest = greatest.max(product(&extents));
                assert!(product(&extents) <= most, "{extents:?}");
                for (extent, class) in extents.into_iter().zip(classes) {
                    match class {
                        Class::Sixteens => assert!(extent > 0 && extent.is_multiple_of(16)),
                        Class::Odd => assert!(!extent.is_multiple_of(2)),
                        Class::Any => {}
                    }
                }
            }
            assert!(greatest > most / 4, "{most}: {greatest}");
        }
    }
}
