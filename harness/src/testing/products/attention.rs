//! The arrays of a problem of attention, on the host and on any device.

use std::rc::Rc;

use exactile::{Buffer, Device, Number, Result};
use exactile_core::ir::Literal;
use exactile_core::random::Random;
use exactile_kernels::attention::{Bias, Half, Keys, Options, Shape, Split, launch, parts};

use super::data::{Kind, numbers};
use super::heads::{Change, Family, Place};
use super::kernels::seed;
use crate::demo::{self, problem};

/// The arrays of a problem on the host, and its numbers.
pub(super) struct Problem<T> {
    shape: Shape,
    family: Family,
    arrays: [Vec<T>; 3],
    window: Option<usize>,
    scale: Option<f32>,
    cap: Option<f32>,
    /// Slopes, or the numbers of a bias.
    added: Vec<f32>,
    query_starts: Vec<i32>,
    key_starts: Vec<i32>,
    lengths: Vec<i32>,
    tables: Vec<i32>,
}

impl<T: Half> Problem<T> {
    /// Within what attention is defined for: logits of a row at most some 50 apart in natural units, and values of little less than 1.
    pub(super) fn random(family: Family, shape: Shape, kind: Kind, one: &mut Random) -> Self {
        let mut problem = Self {
            shape,
            family,
            arrays: [Vec::new(), Vec::new(), Vec::new()],
            window: family.has_window.then(|| 1 + one.below(shape.keys + 20)),
            scale: family.has_scale.then(|| one.pick(&[0.05, 0.2])),
            cap: family.is_capped.then(|| one.pick(&[1.5, 20.0])),
            added: Vec::new(),
            query_starts: Vec::new(),
            key_starts: Vec::new(),
            lengths: Vec::new(),
            tables: Vec::new(),
        };
        problem.place(one);
        problem.added = problem.additions(kind, one);
        let [queries, keys] = problem.rows();
        let of = |kind, rows: usize, one: &mut Random| {
            numbers::<T>(kind, seed(one), (rows * shape.width, 4 * shape.width))
        };
        // Of products of numbers with such exponents sums would be far apart.
        let of_logits = if kind == Kind::Wide {
            Kind::Ordinary
        } else {
            kind
        };
        let of_values =
            [Kind::Ordinary, kind][usize::from(matches!(kind, Kind::Wide | Kind::Zeros))];
        problem.arrays = [
            of(of_logits, queries, one),
            of(of_logits, keys, one),
            of(of_values, keys, one),
        ];
        problem.hide_unread();
        problem
    }

    /// Draws how long sequences are and where their keys lie.
    fn place(&mut self, one: &mut Random) {
        let shape = self.shape;
        let lengths = |one: &mut Random, most: usize| -> Vec<i32> {
            let of_one = |_| match one.one_in(4) {
                true => most,
                false => one.below(most + 1),
            };
            (0..shape.sequences)
                .map(of_one)
                .map(|it| it as i32)
                .collect()
        };
        let starts = |lengths: Vec<i32>| -> Vec<i32> {
            let sums = lengths.iter().scan(0, |sum, length| {
                *sum += length;
                Some(*sum)
            });
            [0].into_iter().chain(sums).collect()
        };
        match self.family.place {
            Place::All => {}
            Place::Lengths => self.lengths = lengths(one, shape.keys),
            Place::Starts => {
                self.query_starts = starts(lengths(one, shape.queries));
                self.key_starts = starts(lengths(one, shape.keys));
            }
            Place::Pages(page) => {
                self.lengths = lengths(one, shape.keys);
                let count = shape.sequences * (shape.keys.div_ceil(page) + 1);
                self.tables = (0..count as i32).collect();
                one.shuffle(&mut self.tables);
            }
        }
    }

    /// Rows of queries and of keys in the arrays.
    fn rows(&self) -> [usize; 2] {
        let shape = self.shape;
        let of = |starts: &[i32], tokens: usize| match starts.last() {
            Some(&end) => end as usize,
            None => shape.sequences * tokens,
        };
        let keys = match self.family.place {
            Place::Pages(page) => self.tables.len() * page,
            Place::All | Place::Lengths | Place::Starts => of(&self.key_starts, shape.keys),
        };
        [
            of(&self.query_starts, shape.queries) * shape.heads,
            keys * shape.key_heads,
        ]
    }

    /// Slopes or the numbers of a bias, few of which hide a key.
    fn additions(&self, kind: Kind, one: &mut Random) -> Vec<f32> {
        let shape = self.shape;
        match self.family.change {
            Change::Nothing => Vec::new(),
            // Distances are as long as there are keys and queries.
            Change::Slopes => {
                let distance = (shape.keys + shape.queries) as f32;
                let slope = |head: usize| 20.0 / distance / (1 + head) as f32;
                (0..shape.heads).map(slope).collect()
            }
            Change::Numbers(sequences, heads) => {
                let of = |there: bool, extent: usize| if there { extent } else { 1 };
                let matrices = of(sequences, shape.sequences) * of(heads, shape.heads);
                let len = matrices * shape.queries * shape.keys;
                let kind =
                    [Kind::Ordinary, kind][usize::from(matches!(kind, Kind::Nan | Kind::Infinite))];
                let mut numbers = numbers(kind, seed(one), (len, 2 * shape.keys + 1));
                for number in &mut numbers {
                    if one.one_in(16) {
                        *number = f32::NEG_INFINITY;
                    }
                }
                numbers
            }
        }
    }

    /// Keys and values that belong to no sequence become NaN: nobody may read them.
    fn hide_unread(&mut self) {
        let (shape, width) = (self.shape, self.shape.width);
        if self.lengths.is_empty() {
            return;
        }
        let mut is_read = vec![false; self.arrays[1].len() / width];
        for sequence in 0..shape.sequences {
            for key in 0..self.lengths[sequence] as usize {
                for head in 0..shape.key_heads {
                    is_read[self.key_row(sequence, key, head)] = true;
                }
            }
        }
        let nan = T::from_bits(u64::MAX);
        for array in &mut self.arrays[1..] {
            for (elements, is_read) in array.chunks_mut(width).zip(&is_read) {
                if !is_read {
                    elements.fill(nan);
                }
            }
        }
    }

    /// The row of a key of a head among those of all.
    fn key_row(&self, sequence: usize, key: usize, head: usize) -> usize {
        let shape = self.shape;
        if let Place::Pages(page) = self.family.place {
            let pages = self.tables.len() / shape.sequences;
            let entry = self.tables[sequence * pages + key / page] as usize;
            return (entry * page + key % page) * shape.key_heads + head;
        }
        match shape.tokens_first {
            true => (sequence * shape.keys + key) * shape.key_heads + head,
            false => (sequence * shape.key_heads + head) * shape.keys + key,
        }
    }

    /// What is said of it.
    pub(super) fn words(&self) -> String {
        let (shape, family) = (self.shape, self.family);
        let mut words = vec![
            format!(
                "{} x {} heads of {}, {} queries, {} keys of {} heads",
                shape.sequences,
                shape.heads,
                shape.width,
                shape.queries,
                shape.keys,
                shape.key_heads
            ),
            if shape.tokens_first {
                "tokens first"
            } else {
                "heads first"
            }
            .to_string(),
        ];
        if shape.causal {
            words.push("causal".to_string());
        }
        words.extend(self.window.map(|it| format!("window {it}")));
        match family.place {
            Place::All => {}
            Place::Lengths => words.push(format!("lengths {:?}", self.lengths)),
            Place::Starts => words.push(format!(
                "starts {:?} and {:?}",
                self.query_starts, self.key_starts
            )),
            Place::Pages(page) => {
                words.push(format!("lengths {:?} in pages of {page}", self.lengths))
            }
        }
        match family.change {
            Change::Nothing => {}
            Change::Slopes => words.push("slopes".to_string()),
            Change::Numbers(sequences, heads) => {
                let own = [(sequences, " of sequences"), (heads, " of heads")];
                let own = own.into_iter().filter(|it| it.0).map(|it| it.1);
                words.push(format!("a bias{}", own.collect::<String>()));
            }
        }
        words.extend(self.cap.map(|it| format!("capped at {it}")));
        words.extend(self.scale.map(|it| format!("scaled by {it}")));
        if family.split > 0 {
            words.push(format!("parts of {} keys", family.split));
        }
        if family.log_sums {
            words.push("logarithms of sums".to_string());
        }
        words.join(", ")
    }

    /// The problem on a device. Where it is `planted`, the first number of each value is another one.
    pub(super) fn on(self: &Rc<Self>, device: &Device, is_planted: bool) -> Result<demo::Problem> {
        let (this, shape, family) = (Rc::clone(self), self.shape, self.family);
        let [q, k, v] = &self.arrays;
        let mut values = v.clone();
        if is_planted {
            let other = T::from_bits(Literal::from_f64(<T as Number>::DTYPE, 3.0).bits);
            let firsts = values.iter_mut().step_by(shape.width);
            firsts.for_each(|it| *it = other);
        }
        let (q, k) = (
            Buffer::from_slice(device, q)?,
            Buffer::from_slice(device, k)?,
        );
        let (v, beside) = (
            Buffer::from_slice(device, &values)?,
            Beside::new(self, device)?,
        );
        let room = match family.split {
            0 => 0,
            every => parts(shape, every, q.len()),
        };
        let mut room = Buffer::zeros(device, room)?;
        let rows = if family.log_sums {
            q.len() / shape.width
        } else {
            0
        };
        let out = Buffer::<T>::zeros(device, q.len())?;
        let outputs = (out, Buffer::<f32>::zeros(device, rows)?);
        Ok(problem(outputs, move |(out, sums), setting| {
            let options = Options {
                split: (family.split > 0).then_some(Split {
                    keys: family.split,
                    parts: &mut room,
                }),
                log_sums: family.log_sums.then_some(sums),
                ..beside.options(&this)
            };
            launch([&q, &k, &v], out, shape, options, setting)
        }))
    }
}

/// What attention takes beside its arrays, on a device.
struct Beside {
    added: Buffer<f32>,
    query_starts: Buffer<i32>,
    key_starts: Buffer<i32>,
    lengths: Buffer<i32>,
    tables: Buffer<i32>,
}

impl Beside {
    fn new<T>(problem: &Problem<T>, device: &Device) -> Result<Self> {
        Ok(Self {
            added: Buffer::from_slice(device, &problem.added)?,
            query_starts: Buffer::from_slice(device, &problem.query_starts)?,
            key_starts: Buffer::from_slice(device, &problem.key_starts)?,
            lengths: Buffer::from_slice(device, &problem.lengths)?,
            tables: Buffer::from_slice(device, &problem.tables)?,
        })
    }

    /// All but what a launch writes.
    fn options<T>(&self, problem: &Problem<T>) -> Options<'_> {
        let family = problem.family;
        Options {
            scale: problem.scale,
            cap: problem.cap,
            bias: match family.change {
                Change::Nothing => None,
                Change::Slopes => Some(Bias::Slopes(&self.added)),
                Change::Numbers(sequences, heads) => Some(Bias::Numbers {
                    numbers: &self.added,
                    sequences,
                    heads,
                }),
            },
            window: problem.window,
            query_starts: (family.place == Place::Starts).then_some(&self.query_starts),
            keys: match family.place {
                Place::All => Keys::All,
                Place::Lengths => Keys::Lengths(&self.lengths),
                Place::Starts => Keys::Starts(&self.key_starts),
                Place::Pages(page) => Keys::Pages {
                    tables: &self.tables,
                    lengths: &self.lengths,
                    page,
                },
            },
            ..Options::default()
        }
    }
}
