//! Problems of attention: shapes, where tokens are, and what becomes of logits.

use std::rc::Rc;

use exactile::{Number, bf16, f16};
use exactile_core::random::Random;
use exactile_kernels::Setting;
use exactile_kernels::attention::{Half, Shape, space};

use super::attention::Problem;
use super::data::Kind;
use super::shapes::{Class, bounded, product};
use super::{Drawn, ProductsOptions, Setup};

/// Keys that `f16` takes at a time, of which its parts are multiples.
const KEYS_OF_NARROW: usize = 128;

/// Below so many multiply-adds there are few heads.
const FEW: u64 = 1 << 23;

/// What codes follow from: problems of one family have it in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) width: usize,
    pub(super) key_heads: usize,
    pub(super) group: usize,
    pub(super) causal: bool,
    pub(super) tokens_first: bool,
    /// Whether there are few queries, as where tokens are decoded.
    pub(super) few: bool,
    pub(super) place: Place,
    pub(super) change: Change,
    pub(super) is_capped: bool,
    pub(super) has_window: bool,
    pub(super) has_scale: bool,
    pub(super) log_sums: bool,
    pub(super) classes: [Class; 2],
    /// Keys of a part, or 0.
    pub(super) split: usize,
}

/// Where keys are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    All,
    Lengths,
    Starts,
    /// In pages of so many tokens.
    Pages(usize),
}

/// What is added to logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Nothing,
    Slopes,
    /// Numbers: whether each sequence has its own, and each head.
    Numbers(bool, bool),
}

impl Family {
    /// Of few heads where there are to be few multiply-adds, so that there are more than a few keys.
    fn random(random: &mut Random, most: u64) -> Self {
        let place = match random.below(8) {
            0..=2 => Place::All,
            3 | 4 => Place::Lengths,
            5 => Place::Starts,
            _ => Place::Pages(random.pick(&[8, 16, 64])),
        };
        let heads = if most < FEW { 1 } else { 4 };
        let in_rows = matches!(place, Place::Starts | Place::Pages(_));
        Self {
            width: random.pick(&[64, 64, 80, 96, 128, 128, 256]),
            key_heads: random.pick(&[1, 2, 3]).min(heads),
            group: random.pick(&[1, 1, 2, 3, 4, 8]).min(2 * heads),
            causal: random.one_in(2),
            tokens_first: in_rows || random.one_in(2),
            few: random.one_in(3),
            place,
            change: match random.below(6) {
                0 => Change::Slopes,
                1 => Change::Numbers(random.one_in(2), random.one_in(2)),
                _ => Change::Nothing,
            },
            is_capped: random.one_in(5),
            has_window: random.one_in(4),
            has_scale: random.one_in(4),
            log_sums: random.one_in(2),
            classes: [(); 2].map(|()| Class::random(random)),
            split: match random.one_in(3) {
                true => random.pick(&[64, 128, 128, 256]),
                false => 0,
            },
        }
    }
}

/// A problem of attention.
pub(super) fn draw(options: &ProductsOptions, mut family: Random, one: Random) -> Drawn {
    match family.one_in(3) {
        true => drawn::<f16>(options, family, one),
        false => drawn::<bf16>(options, family, one),
    }
}

fn drawn<T: Half>(options: &ProductsOptions, mut of_family: Random, mut one: Random) -> Drawn {
    let name = of_family.bits();
    let mut family = Family::random(&mut of_family, options.most);
    if T::NARROW {
        family.split = family.split.next_multiple_of(KEYS_OF_NARROW);
    }
    let shape = shape(family, options.most, &mut one);
    let kind = logits_of(&mut one);
    let problem = Problem::<T>::random(family, shape, kind, &mut one);
    let dtype = <T as Number>::DTYPE.name();
    let title = format!("attention {dtype}, {}, {}", problem.words(), kind.name());
    let work = of_shape(shape, shape.queries) * shape.keys as u64;
    let problem = Rc::new(problem);
    let setup = |is_planted: bool| -> Setup {
        let problem = Rc::clone(&problem);
        Box::new(move |device| problem.on(device, is_planted))
    };
    Drawn {
        title,
        kernel: format!("attention {dtype}"),
        family: format!("attention {dtype} {name}"),
        work,
        candidates: candidates::<T>(shape, family.split),
        small: Setting {
            block: 16,
            width: if T::NARROW { KEYS_OF_NARROW } else { 16 },
            ..Setting::default()
        },
        golden: setup(false),
        setup: setup(options.planted),
        expected: Box::new(Ok),
    }
}

/// The settings worth trying whose keys divide a part, and of `f16` are those that its bits follow from.
fn candidates<T: Half>(shape: Shape, split: usize) -> Vec<Setting> {
    let divides = |keys: usize| split.is_multiple_of(keys);
    let fits = |keys: usize| divides(keys) && (!T::NARROW || keys == KEYS_OF_NARROW);
    let all = space(shape).into_iter();
    all.filter(|it| fits(it.width)).collect()
}

/// Multiply-adds of so many queries of each head with one key, of both products.
fn of_shape(shape: Shape, queries: usize) -> u64 {
    2 * product(&[shape.sequences, shape.heads, queries, shape.width])
}

fn shape(family: Family, most: u64, one: &mut Random) -> Shape {
    let mut shape = Shape {
        sequences: one.pick(&[1, 2, 3]).min(if most < FEW { 2 } else { 3 }),
        heads: family.key_heads * family.group,
        key_heads: family.key_heads,
        queries: one.pick(&[1, 1, 2, 4]),
        keys: 0,
        width: family.width,
        causal: family.causal,
        tokens_first: family.tokens_first,
    };
    let [of_queries, of_keys] = family.classes;
    if family.few {
        let most = most / of_shape(shape, shape.queries).max(1);
        // Keys of many tiles, as far as that is allowed.
        let large = one.one_in(3).then_some(most.min(1 << 17) as usize);
        let keys = of_keys.extent(one, large);
        shape.keys = keys.clamp(1, most.max(1) as usize);
        return shape;
    }
    let most = most / of_shape(shape, 1);
    [shape.queries, shape.keys] = bounded(one, [of_queries, of_keys], most);
    shape
}

/// The numbers of queries and keys. Values are finite.
fn logits_of(one: &mut Random) -> Kind {
    one.pick(&[
        Kind::Ordinary,
        Kind::Ordinary,
        Kind::Ordinary,
        Kind::Wide,
        Kind::Subnormal,
        Kind::Zeros,
        Kind::Nan,
        Kind::Infinite,
    ])
}
