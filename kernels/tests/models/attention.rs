//! Attention by tensor cores against plain Rust, and its bits against those of other tiles, devices and forms.

mod forms;
mod range;

use exactile::{Buffer, Device, Result, bf16};
use exactile_kernels::Setting;
use exactile_kernels::attention::{
    Bias, Keys, Options, Shape, Split, launch as attention, parts, space,
};

use super::super::numbers;

/// What attention may do beside, on the host.
#[derive(Clone, Debug, Default)]
struct Extra {
    scale: Option<f32>,
    cap: Option<f32>,
    window: Option<usize>,
    slopes: Vec<f32>,
    bias: Option<(Vec<f32>, bool, bool)>,
    query_starts: Vec<i32>,
    key_starts: Vec<i32>,
    lengths: Vec<i32>,
    tables: Vec<i32>,
    page: usize,
    split: usize,
}

/// Arrays of attention and what it may do beside.
#[derive(Clone, Debug)]
struct Problem {
    shape: Shape,
    arrays: [Vec<bf16>; 3],
    extra: Extra,
}

/// Results, and logarithms of sums.
type Found = (Vec<bf16>, Vec<f32>);

const SHAPE: Shape = Shape::new(2, 256, 64, false);

/// Causal, and of tokens that no tile divides.
const UNEVEN: Shape = Shape::new(2, 200, 64, true);

/// Two sequences of four heads that share two of keys.
const GROUPED: Shape = Shape {
    sequences: 2,
    heads: 4,
    key_heads: 2,
    queries: 40,
    keys: 96,
    width: 32,
    causal: true,
    tokens_first: true,
};

fn halves(len: usize, from: usize, scale: f32) -> Vec<bf16> {
    let all = numbers(len + from);
    all[from..]
        .iter()
        .map(|&x| bf16::from_f32(x * scale))
        .collect()
}

impl Problem {
    fn new(shape: Shape) -> Self {
        let of_queries = shape.sequences * shape.heads * shape.queries * shape.width;
        let of_keys = shape.sequences * shape.key_heads * shape.keys * shape.width;
        Self {
            shape,
            arrays: [
                halves(of_queries, 0, 2.0),
                halves(of_keys, 7, 2.0),
                halves(of_keys, 5, 2.0),
            ],
            extra: Extra::default(),
        }
    }

    fn with(self, change: impl FnOnce(&mut Extra)) -> Self {
        let mut extra = self.extra.clone();
        change(&mut extra);
        Self { extra, ..self }
    }

    fn launched(&self, device: &Device, setting: &Setting) -> Result<Found> {
        let (shape, extra) = (self.shape, &self.extra);
        let [q, k, v] = self
            .arrays
            .each_ref()
            .map(|it| Buffer::from_slice(device, it));
        let (q, k, v) = (q?, k?, v?);
        let floats = |numbers: &[f32]| Buffer::from_slice(device, numbers);
        let indices = |numbers: &[i32]| Buffer::from_slice(device, numbers);
        let (slopes, lengths) = (floats(&extra.slopes)?, indices(&extra.lengths)?);
        let (query_starts, key_starts) =
            (indices(&extra.query_starts)?, indices(&extra.key_starts)?);
        let tables = indices(&extra.tables)?;
        let mut out = Buffer::zeros(device, q.len())?;
        let mut sums = Buffer::zeros(device, q.len() / shape.width)?;
        let mut room = Buffer::zeros(device, parts(shape, extra.split, q.len()))?;
        let numbers = extra.bias.as_ref().map(|(numbers, ..)| floats(numbers));
        let numbers = numbers.transpose()?;
        let bias = numbers.as_ref().zip(extra.bias.as_ref());
        let bias = bias.map(|(numbers, &(_, sequences, heads))| Bias::Numbers {
            numbers,
            sequences,
            heads,
        });
        let options = Options {
            scale: extra.scale,
            cap: extra.cap,
            window: extra.window,
            bias: bias.or((!slopes.is_empty()).then_some(Bias::Slopes(&slopes))),
            query_starts: (!query_starts.is_empty()).then_some(&query_starts),
            keys: match (extra.page, key_starts.is_empty(), lengths.is_empty()) {
                (0, true, true) => Keys::All,
                (0, true, false) => Keys::Lengths(&lengths),
                (0, false, _) => Keys::Starts(&key_starts),
                (page, ..) => Keys::Pages {
                    tables: &tables,
                    lengths: &lengths,
                    page,
                },
            },
            split: (extra.split > 0).then_some(Split {
                keys: extra.split,
                parts: &mut room,
            }),
            log_sums: Some(&mut sums),
            ..Options::default()
        };
        attention([&q, &k, &v], &mut out, shape, options, setting)?;
        Ok((out.to_vec()?, sums.to_vec()?))
    }

    fn run(&self, device: &Device, setting: &Setting) -> Found {
        let found = self.launched(device, setting);
        found.unwrap_or_else(|error| panic!("{device}, {setting:?}: {error}"))
    }

    fn golden(&self) -> Found {
        self.run(&Device::cpu(), &Setting::default())
    }

    /// The numbers of queries and keys of a sequence, and where the first of each are.
    fn spans(&self, sequence: usize) -> [(usize, usize); 2] {
        let (shape, extra) = (self.shape, &self.extra);
        let span = |starts: &[i32], count: usize| match starts.get(sequence..sequence + 2) {
            Some(ends) => (ends[0] as usize, (ends[1] - ends[0]) as usize),
            None => (sequence * count, count),
        };
        let mut keys = span(&extra.key_starts, shape.keys);
        if let Some(&length) = extra.lengths.get(sequence) {
            keys.1 = length as usize;
        }
        [span(&extra.query_starts, shape.queries), keys]
    }

    /// The element where a token of a head begins, of arrays of so many heads and tokens.
    fn at(
        &self,
        [sequence, head, heads]: [usize; 3],
        (first, token): (usize, usize),
        tokens: usize,
    ) -> usize {
        let row = match self.shape.tokens_first {
            true => (first + token) * heads + head,
            false => (sequence * heads + head) * tokens + token,
        };
        row * self.shape.width
    }

    /// The element where a key of a head of queries begins.
    fn key_at(&self, [sequence, head]: [usize; 2], (first, key): (usize, usize)) -> usize {
        let (shape, extra) = (self.shape, &self.extra);
        let (own, heads) = (head / (shape.heads / shape.key_heads), shape.key_heads);
        if let Some(entry) = key.checked_div(extra.page) {
            let pages = extra.tables.len() / shape.sequences;
            let page = extra.tables[sequence * pages + entry] as usize;
            return ((page * extra.page + key % extra.page) * heads + own) * shape.width;
        }
        self.at([sequence, own, heads], (first, key), shape.keys)
    }

    /// What the bias of a row and a key is.
    fn bias(&self, [sequence, head, query, key]: [usize; 4]) -> f64 {
        let shape = self.shape;
        self.extra
            .bias
            .as_ref()
            .map_or(0.0, |(numbers, sequences, heads)| {
                let of_sequence = if *sequences { sequence } else { 0 };
                let of_head = if *heads { head } else { 0 };
                let row = of_sequence * if *heads { shape.heads } else { 1 } + of_head;
                f64::from(numbers[(row * shape.queries + query) * shape.keys + key])
            })
    }

    /// What the definition says in `f64`: the result of a row and the logarithm of its sum, with where the row begins.
    fn row(&self, sequence: usize, head: usize, query: usize) -> (usize, Vec<f64>, f64) {
        let (shape, extra) = (self.shape, &self.extra);
        let [queries, keys] = self.spans(sequence);
        let width = shape.width;
        let own = self.at(
            [sequence, head, shape.heads],
            (queries.0, query),
            shape.queries,
        );
        let [q, k, v] = &self.arrays;
        let position = query as i64 + keys.1 as i64 - queries.1 as i64;
        let sees = |key: usize| {
            let distance = position - key as i64;
            let near = extra
                .window
                .is_none_or(|window| distance.abs() < window as i64);
            near && (!shape.causal || distance >= 0)
        };
        let place = |key: usize| self.key_at([sequence, head], (keys.0, key));
        let scale = extra.scale.map_or(1.0 / (width as f64).sqrt(), f64::from);
        let logit = |key: usize| {
            let at = place(key);
            let products = (0..width).map(|i| q[own + i].to_f64() * k[at + i].to_f64());
            let logit = products.sum::<f64>() * scale;
            let capped = extra
                .cap
                .map(f64::from)
                .map(|cap| cap * (logit / cap).tanh());
            let distance = (position - key as i64).abs() as f64;
            let slope = extra
                .slopes
                .get(head)
                .map_or(0.0, |&slope| f64::from(slope));
            let bias = self.bias([sequence, head, query, key]);
            capped.unwrap_or(logit) - slope * distance + bias
        };
        let seen: Vec<(usize, f64)> = (0..keys.1)
            .filter(|&key| sees(key))
            .map(|key| (key, logit(key)))
            .collect();
        let most = seen.iter().map(|it| it.1).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = seen.iter().map(|it| (it.1 - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let element = |i: usize| {
            let products = seen.iter().zip(&weights);
            let products = products.map(|(&(key, _), weight)| weight * v[place(key) + i].to_f64());
            if seen.is_empty() {
                0.0
            } else {
                products.sum::<f64>() / sum
            }
        };
        (own, (0..width).map(element).collect(), most + sum.ln())
    }

    /// Every seventh row is near its definition.
    fn assert_near(&self, (got, sums): &Found, tolerance: f64) {
        let shape = self.shape;
        for sequence in 0..shape.sequences {
            let [(_, queries), _] = self.spans(sequence);
            for row in (0..shape.heads * queries).step_by(7) {
                let (own, want, sum) = self.row(sequence, row % shape.heads, row / shape.heads);
                let found = f64::from(sums[own / shape.width]);
                let near = found == sum || (found - sum).abs() < 4e-3;
                assert!(near, "{sequence}, {row}: the sum {found}, expected {sum}");
                for (at, want) in want.iter().enumerate() {
                    let got = got[own + at].to_f64();
                    let near = (got - want).abs() <= tolerance * (1.0 + want.abs());
                    assert!(near, "{sequence}, {row}, {at}: {got}, expected {want}");
                }
            }
        }
    }

    /// Every tile has the bits of the golden run, on the CPU and as code of a GPU.
    fn assert_alike(&self, golden: &Found) {
        let gpu = Device::cuda(0).ok();
        let runs = [(16, 16), (64, 32), (128, 128), (32, 64)];
        let runs = runs.map(|tile| (Device::cpu(), tiled(tile)));
        let lanes = [(64, 64), (16, 32)].map(|tile| (Device::lanes(), tiled(tile)));
        let on_gpu = gpu.iter().flat_map(|gpu| {
            [(64, 64), (16, 32), (128, 128)].map(|tile| (gpu.clone(), tiled(tile)))
        });
        for (device, setting) in runs.into_iter().chain(lanes).chain(on_gpu) {
            let divides = self.extra.split == 0 || self.extra.split.is_multiple_of(setting.width);
            if divides {
                let found = self.run(&device, &setting);
                assert!(found == *golden, "{device}, {setting:?}, {:?}", self.shape);
            }
        }
    }
}

fn tiled((block, width): (usize, usize)) -> Setting {
    Setting {
        block,
        width,
        ..Setting::default()
    }
}

#[test]
fn attention_is_near_its_definition_in_plain_rust() {
    for shape in [SHAPE, UNEVEN] {
        let problem = Problem::new(shape);
        problem.assert_near(&problem.golden(), 5e-3);
    }
}

#[test]
fn bits_follow_no_tile_size_and_no_device() {
    for shape in [SHAPE, UNEVEN] {
        let problem = Problem::new(shape);
        let golden = problem.golden();
        problem.assert_alike(&golden);
        let found = problem.run(&Device::lanes(), &tiled((64, 256)));
        assert!(found == golden);
    }
}

#[test]
fn every_setting_worth_trying_has_the_bits_of_a_cpu() {
    // More tiles of keys than slots, so that each slot is filled again.
    let problem = Problem::new(Shape::new(1, 640, 64, false));
    let golden = problem.golden();
    for setting in space(problem.shape) {
        let found = problem.run(&Device::lanes(), &setting);
        assert!(found == golden, "lanes, {setting:?}");
    }
}

/// Heads that share keys, in both orders of heads and tokens, of as many queries as keys and of fewer, and more.
#[test]
fn groups_of_heads_share_keys() {
    let three = Shape {
        heads: 6,
        queries: 3,
        ..GROUPED
    };
    let more = Shape {
        queries: 100,
        keys: 50,
        tokens_first: false,
        ..GROUPED
    };
    let rows = Shape {
        tokens_first: false,
        ..GROUPED
    };
    for shape in [GROUPED, rows, three, more] {
        let problem = Problem::new(shape);
        let golden = problem.golden();
        problem.assert_near(&golden, 5e-3);
        problem.assert_alike(&golden);
    }
}
