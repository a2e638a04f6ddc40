//! The launches of attention: which tiles they take, and what they pass.

use exactile::{Buffer, BufferSliceMut, Configure, Optional, Result, Schedule};

use crate::attention::{ChangeArguments, ResultsArguments, TokensArguments, attention};
use crate::attention_merge::merge_parts;
use crate::heads::{Bias, Extremes, FEW, Half, Keys, Options, Shape, check};
use crate::key_tiles::LEAST_RUN;
use crate::setting::{Setting, ensure, extent};

const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// The keys that `f16` takes at a time: they decide on its bits.
const NARROW_KEYS: usize = 128;

/// The parts of a row that are added at once, at most.
const MOST_AT_ONCE: usize = 32;

/// The attention of `q` over `k` and `v`, whose arrays [`Shape`] and [`Options`] tell. A setting's `block` is the rows of a program, queries
/// of the heads that share keys, its `width` the keys that are taken at a time, of `f16` 128; below 128 elements, of up
/// to 64 such queries, and over pages, iterations do not overlap unless it says so. Rows whose logits are all
/// more than 126 below -2^22, in base 2, are zero. All of `v` is finite, also at keys that a row does not see.
///
/// # Errors
/// What a launch refuses; lengths and starts that do not fit the shape, and pages that are not there, are told by what waits for the launch.
pub fn launch<T: Half>(
    arrays: [&Buffer<T>; 3],
    out: &mut Buffer<T>,
    shape: Shape,
    mut options: Options<'_>,
    setting: &Setting,
) -> Result<()> {
    check(arrays, out.len(), shape, &options)?;
    if out.is_empty() {
        return Ok(());
    }
    let (split, log_sums) = (options.split.take(), options.log_sums.take());
    let extremes = options.extremes.take();
    let every = split.as_ref().map(|it| it.keys);
    let launch = Launch::new(arrays, out.len(), shape, &options, (every, setting))?;
    let log_sums = Optional(log_sums.map(|it| it.slice_mut(..)).transpose()?);
    let [greatest, least] = cleared(extremes)?;
    let results = ResultsArguments {
        out: Optional(None),
        log_sums: Optional(None),
        totals: Optional(None),
        sums: Optional(None),
        powers: Optional(None),
        greatest,
        least,
        rows: extent(launch.rows)?,
    };
    match split.filter(|_| launch.parts > 1) {
        None => launch.attend(ResultsArguments {
            out: Optional(Some(out.slice_mut(..)?)),
            log_sums,
            ..results
        }),
        Some(split) => launch.by_parts(split.parts, (out, log_sums), results),
    }
}

/// What a launch passes where results go.
type Target<'a, T> = Optional<BufferSliceMut<'a, T>>;

type Results<'a, T> = ResultsArguments<
    Target<'a, T>,
    Target<'a, f32>,
    Target<'a, f32>,
    Target<'a, f32>,
    Target<'a, f32>,
    Target<'a, f32>,
    Target<'a, f32>,
    i32,
>;

/// Extremes of nothing.
fn cleared(extremes: Option<Extremes<'_>>) -> Result<[Target<'_, f32>; 2]> {
    let Some(Extremes { greatest, least }) = extremes else {
        return Ok([Optional(None), Optional(None)]);
    };
    greatest.fill(f32::NEG_INFINITY)?;
    least.fill(f32::INFINITY)?;
    Ok([
        Optional(Some(greatest.slice_mut(..)?)),
        Optional(Some(least.slice_mut(..)?)),
    ])
}

/// A launch whose arguments have been found to fit.
struct Launch<'a, T> {
    arrays: [&'a Buffer<T>; 3],
    shape: Shape,
    options: &'a Options<'a>,
    setting: &'a Setting,
    /// The rows of the result.
    rows: usize,
    /// Rows of a program, keys at a time, columns of a tile.
    tile: [usize; 3],
    /// Keys of a part, and the number of parts.
    every: Option<usize>,
    parts: usize,
}

impl<'a, T: Half> Launch<'a, T> {
    fn new(
        arrays: [&'a Buffer<T>; 3],
        len: usize,
        shape: Shape,
        options: &'a Options<'a>,
        (every, setting): (Option<usize>, &'a Setting),
    ) -> Result<Self> {
        let (d, rows) = (
            shape.width.next_power_of_two().max(16),
            shape.group_rows().min(1 << 40).next_power_of_two(),
        );
        // Of others bits follow the keys that are taken at a time.
        let free = !T::NARROW || options.greatest.is_some();
        let most = most_together(options.keys);
        // Fewer keys leave registers: for two programs a multiprocessor, and for what keys need that lanes load.
        let n = match free {
            true if most < 16 => 32,
            true if rows <= FEW => most.min(64),
            true => most,
            false => NARROW_KEYS,
        };
        if let Some(keys) = every {
            ensure(keys.is_multiple_of(16) && keys > 0, || {
                format!("a part of {keys} keys is no multiple of 16")
            })?;
        }
        let of_part = every.map_or(n, |keys| 1 << keys.trailing_zeros().min(usize::BITS - 1));
        let n = setting.width_or(if free { n.min(of_part) } else { n });
        let in_lanes = most < n && matches!(options.keys, Keys::Pages { .. });
        let m = match rows <= FEW {
            true if in_lanes => rows.max(16),
            true => FEW,
            false => 128,
        };
        let m = setting.block_or(m).max(shape.share());
        for extent in [m, n] {
            ensure(extent.is_power_of_two() && extent >= 16, || {
                format!("{extent} is no power of two from 16, as the tiles of attention are")
            })?;
        }
        ensure(free || n == NARROW_KEYS, || {
            format!(
                "{n} keys at a time, of which f16 takes {NARROW_KEYS} unless the greatest logits are given"
            )
        })?;
        if let Some(keys) = every {
            ensure(keys.is_multiple_of(n), || {
                format!("a part of {keys} keys is no multiple of the {n} that are taken at a time")
            })?;
        }
        Ok(Self {
            arrays,
            shape,
            options,
            setting,
            rows: len / shape.width,
            tile: [m, n, d],
            every,
            parts: every.map_or(1, |keys| shape.keys.div_ceil(keys).max(1)),
        })
    }

    /// Parts, and what they are together.
    fn by_parts(
        &self,
        parts: &mut Buffer<f32>,
        (out, log_sums): (&mut Buffer<T>, Target<'_, f32>),
        results: Results<'_, T>,
    ) -> Result<()> {
        let (count, rows, width) = (self.parts, self.rows, self.shape.width);
        let [totals, sums] = [width, 1].map(|width| count * rows * width);
        let (first, rest) = parts.slice_mut(..)?.split_at(totals)?;
        let (second, third) = rest.split_at(sums)?;
        self.attend(ResultsArguments {
            totals: Optional(Some(first)),
            sums: Optional(Some(second)),
            powers: Optional(Some(third)),
            ..results
        })?;
        let device = out.device().clone();
        let of_rows = |start: usize| parts.slice(start..start + sums)?.view([count, rows]);
        let of_all = parts.slice(..totals)?.view([count, rows, width])?;
        let log_sums = log_sums.0.map(|it| it.view_mut([rows])).transpose()?;
        let kernel = merge_parts::<T>()
            .d(self.tile[2])
            .parts(count.next_power_of_two().min(MOST_AT_ONCE))
            .whole(count <= MOST_AT_ONCE)
            .early(2)
            .determinism(self.setting.determinism);
        let of_parts = (of_all, of_rows(totals)?, of_rows(totals + sums)?);
        let out = (out.view_mut([rows, width])?, Optional(log_sums));
        let (totals, sums, powers) = of_parts;
        kernel.launch(&device, (), (totals, sums, powers, out.0, out.1))
    }

    /// Launches the kernel.
    fn attend(&self, results: Results<'_, T>) -> Result<()> {
        let (shape, [m, n, d]) = (self.shape, self.tile);
        // What else a row needs takes registers that such programs have no more of.
        let gains = self.is_plain() && !T::NARROW && self.tile == [128; 3];
        let setting = self.setting.or_producer(gains);
        let in_pages = matches!(self.options.keys, Keys::Pages { .. });
        // The second product is too short to hide the weights, or two programs on a multiprocessor hide them, or values would wait for
        // entries of tables.
        let in_order = d < 128 || shape.group_rows() <= FEW || in_pages;
        let page = match self.options.keys {
            Keys::Pages { page, .. } => page,
            Keys::All | Keys::Lengths(_) | Keys::Starts(_) => 1,
        };
        let kernel = attention::<T>()
            .d(d)
            .width(shape.width)
            .m(m)
            .n(n)
            .group(shape.heads / shape.key_heads)
            .heads(if self.tells_sequences() {
                shape.key_heads
            } else {
                1
            })
            .page(page)
            .together(shape.tokens_first)
            .causal(shape.causal)
            .whole(matches!(self.options.keys, Keys::All) && shape.keys.is_multiple_of(n))
            .narrow(T::NARROW)
            .schedule(Schedule {
                overlap: setting.schedule.overlap.or(in_order.then_some(1)),
                ..setting.schedule
            })
            .determinism(setting.determinism);
        let grid = (
            shape.group_rows().div_ceil(m),
            shape.sequences.saturating_mul(shape.key_heads),
            self.parts,
        );
        let [q, k, v] = self.arrays;
        let arguments = ([q, k, v], results, self.tokens()?, self.change()?);
        kernel.launch(q.device(), grid, arguments)
    }

    /// Whether a program must know which sequence it works on.
    fn tells_sequences(&self) -> bool {
        self.shape.tokens_first || !self.is_plain()
    }

    /// Whether all keys of all sequences are there, and nothing is added to their logits.
    fn is_plain(&self) -> bool {
        matches!(self.options.keys, Keys::All) && self.options.bias.is_none()
    }

    fn tokens(&self) -> Result<TokensArgument<'a>> {
        let (shape, options) = (self.shape, self.options);
        let beside = if shape.tokens_first {
            shape.key_heads
        } else {
            1
        };
        let mut tokens = TokensArguments {
            queries: extent(shape.queries)?,
            keys: extent(shape.keys)?,
            key_rows: extent(self.arrays[1].len() / (shape.width * beside))?,
            pages: 0,
            entries: 0,
            query_starts: options.query_starts,
            key_starts: None,
            lengths: None,
            tables: None,
            window: options.window.map(extent).transpose()?,
            every: self
                .every
                .filter(|_| self.parts > 1)
                .map(extent)
                .transpose()?,
        };
        match options.keys {
            Keys::All => {}
            Keys::Lengths(lengths) => tokens.lengths = Some(lengths),
            Keys::Starts(starts) => tokens.key_starts = Some(starts),
            Keys::Pages {
                tables, lengths, ..
            } => {
                (tokens.tables, tokens.lengths) = (Some(tables), Some(lengths));
                tokens.pages = extent(tables.len() / shape.sequences.max(1))?;
                tokens.entries = extent(tables.len())?;
            }
        }
        Ok(tokens)
    }

    fn change(&self) -> Result<ChangeArgument<'a>> {
        let (shape, options) = (self.shape, self.options);
        let root = (shape.width as f64).sqrt();
        let scale = options
            .scale
            .map_or(LOG2_E / root, |it| f64::from(it) * LOG2_E);
        let cap = options.cap.map(f64::from);
        let mut change = ChangeArguments {
            scale: cap.map_or(scale, |cap| cap * LOG2_E) as f32,
            cap: cap.map(|cap| (scale / LOG2_E / cap) as f32),
            bias: None,
            steps: [0; 2],
            slopes: None,
            greatest: options.greatest,
        };
        match options.bias {
            None => {}
            Some(Bias::Slopes(slopes)) => change.slopes = Some(slopes),
            Some(Bias::Numbers {
                numbers,
                sequences,
                heads,
            }) => {
                let of_head = shape.queries * shape.keys;
                let of_sequence = if heads {
                    shape.heads * of_head
                } else {
                    of_head
                };
                let step = |there: bool, step: usize| extent(if there { step } else { 0 });
                change.steps = [step(sequences, of_sequence)?, step(heads, of_head)?];
                change.bias = Some(numbers);
            }
        }
        Ok(change)
    }
}

type Index<'a> = Option<&'a Buffer<i32>>;

type TokensArgument<'a> = TokensArguments<
    i32,
    i32,
    i32,
    i32,
    i32,
    Index<'a>,
    Index<'a>,
    Index<'a>,
    Index<'a>,
    Option<i32>,
    Option<i32>,
>;

type ChangeArgument<'a> =
    ChangeArguments<f32, Option<f32>, Numbers<'a>, [i32; 2], Numbers<'a>, Numbers<'a>>;

type Numbers<'a> = Option<&'a Buffer<f32>>;

/// The settings worth trying.
pub fn space(shape: Shape) -> Vec<Setting> {
    if shape.group_rows() <= FEW {
        let tiles = [
            (64, 64, 4, 2),
            (64, 64, 4, 3),
            (64, 128, 4, 2),
            (64, 128, 4, 3),
            (16, 64, 4, 3),
        ];
        let deep = Setting::staged((64, 64, 4, 6));
        let deep = Setting {
            schedule: deep.schedule.overlap(2),
            ..deep
        };
        return [&tiles.map(Setting::staged)[..], &[deep]].concat();
    }
    let tiles = [
        (128, 128, 8, 2),
        (64, 128, 4, 2),
        (128, 64, 8, 3),
        (128, 128, 8, 3),
        (64, 64, 4, 2),
    ];
    let in_order = [(128, 128, 8, 2), (64, 64, 4, 2)].map(Setting::staged);
    let in_order = in_order.map(|setting| Setting {
        schedule: setting.schedule.overlap(1),
        ..setting
    });
    [&tiles.map(Setting::staged)[..], &in_order].concat()
}

/// How many keys bulk copies bring together: those of several pages of a power of two, or of which one divides a page.
fn most_together(keys: Keys<'_>) -> usize {
    match keys {
        Keys::Pages { page, .. } if page < LEAST_RUN || !page.is_power_of_two() => {
            1 << page.trailing_zeros().min(7)
        }
        Keys::All | Keys::Lengths(_) | Keys::Starts(_) | Keys::Pages { .. } => NARROW_KEYS,
    }
}
