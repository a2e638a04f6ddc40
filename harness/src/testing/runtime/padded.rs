//! Products of matrices whose rows begin anywhere: a GPU that copies boxes of arrays copies such rows before the kernel, where that
//! is worth while. Shapes are as large as that asks there, and small elsewhere.

use exactile::prelude::*;
use exactile::{DeviceKind, Result, Stream, TensorView, bf16};

use super::{Check, expect};

/// All checks.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "products of rows that begin anywhere have the bits of those of aligned rows",
        run: rows_begin_anywhere,
    },
    Check {
        name: "replays multiply what arrays hold then, wherever their rows begin",
        run: replays_copy_anew,
    },
    Check {
        name: "launches with copied rows stand in any stream, and their arrays go while they are under way",
        run: copies_go,
    },
];

#[kernel(BM = 64, BN = 64, BK = 64)]
fn multiply<const BM: usize, const BN: usize, const BK: usize>(
    a: Tensor<bf16, 2>,
    b: Tensor<bf16, 2>,
    c: TensorMut<f32, 2>,
) {
    let (row, column) = (program_id(0) * BM, program_id(1) * BN);
    let mut sum = zeros::<f32>([BM, BN]);
    for k in range(0, a.extent(1)).step(BK).stages(3) {
        let left = a.tile([BM, BK]).at_offset([row, k]).load();
        let right = b.tile([BK, BN]).at_offset([k, column]).load();
        sum = dot_with(Precision::Hopper, left, right, sum);
    }
    c.tile([BM, BN]).at_offset([row, column]).store(sum);
}

/// A matrix in an array: its first element, and how far its rows or, where it is turned, its columns are apart.
struct Matrix {
    array: Buffer<bf16>,
    extents: [usize; 2],
    start: usize,
    stride: usize,
    is_turned: bool,
}

impl Matrix {
    /// Elements that follow from their indices and the seed alone.
    fn numbers(&self, seed: usize) -> Vec<bf16> {
        let [rows, columns] = self.extents;
        let mut numbers = vec![bf16::from_f32(3.0); self.len()];
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |it| (row, it))) {
            let [down, across] = self.strides();
            let number = (row * 7919 + column * 104_729 + seed * 31) % 2003;
            let at = self.start + row * down + column * across;
            numbers[at] = bf16::from_f32(number as f32 / 64.0 - 15.0);
        }
        numbers
    }

    fn new(
        device: &Device,
        extents: [usize; 2],
        (start, stride): (usize, usize),
        is_turned: bool,
    ) -> Result<Self> {
        let mut matrix = Self {
            array: Buffer::zeros(device, 1)?,
            extents,
            start,
            stride,
            is_turned,
        };
        matrix.array = Buffer::from_slice(device, &matrix.numbers(1))?;
        Ok(matrix)
    }

    fn len(&self) -> usize {
        let ([rows, columns], [down, across]) = (self.extents, self.strides());
        self.start + (rows - 1) * down + (columns - 1) * across + 1
    }

    fn strides(&self) -> [usize; 2] {
        match self.is_turned {
            true => [1, self.stride],
            false => [self.stride, 1],
        }
    }

    fn view(&self) -> Result<TensorView<'_, bf16, 2>> {
        let rows = self.array.slice(self.start..)?;
        rows.view_strided(self.extents, self.strides())
    }
}

/// The rows and the columns of a product, and the terms of its sums.
fn extents(device: &Device) -> [usize; 3] {
    match device.kind() {
        DeviceKind::Cuda(_) => [1023, 1025, 1021],
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => [67, 65, 69],
    }
}

/// Two factors: where each begins, and how far its rows are apart beyond their length.
fn factors(
    device: &Device,
    [left, right]: [[usize; 2]; 2],
    is_turned: bool,
) -> Result<[Matrix; 2]> {
    let [m, n, k] = extents(device);
    let row = if is_turned { k } else { n };
    let of_right = (right[0], row + right[1]);
    Ok([
        Matrix::new(device, [m, k], (left[0], k + left[1]), false)?,
        Matrix::new(device, [k, n], of_right, is_turned)?,
    ])
}

/// Factors whose rows begin at multiples of 16 bytes.
fn aligned(device: &Device) -> Result<[Matrix; 2]> {
    let [_, n, k] = extents(device);
    let rest = |extent: usize| extent.next_multiple_of(64) - extent;
    factors(device, [[0, rest(k)], [0, rest(n)]], false)
}

fn launch(stream: &Stream, [left, right]: &[Matrix; 2], out: &mut Buffer<f32>) -> Result<()> {
    let [m, n, _] = extents(stream.device());
    let grid = (m.div_ceil(64), n.div_ceil(64));
    let kernel = multiply().warps(4);
    kernel.launch(
        stream,
        grid,
        (left.view()?, right.view()?, out.view_mut([m, n])?),
    )
}

fn out(device: &Device) -> Result<Buffer<f32>> {
    let [m, n, _] = extents(device);
    Buffer::zeros(device, m * n)
}

fn bits(numbers: &Buffer<f32>) -> Result<Vec<u32>> {
    Ok(numbers.to_vec()?.into_iter().map(f32::to_bits).collect())
}

/// The bits of the product of the factors.
fn product(stream: &Stream, factors: &[Matrix; 2]) -> Result<Vec<u32>> {
    let mut out = out(stream.device())?;
    launch(stream, factors, &mut out)?;
    stream.synchronize()?;
    bits(&out)
}

fn rows_begin_anywhere(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    let want = product(&stream, &aligned(device)?)?;
    for (places, is_turned) in [
        ([[0, 0], [0, 0]], false),
        ([[0, 0], [0, 0]], true),
        ([[1, 0], [3, 2]], false),
        ([[8, 3], [0, 1]], true),
    ] {
        let factors = factors(device, places, is_turned)?;
        // Checked at first, then proved.
        for turn in ["checked", "proved"] {
            let found = product(&stream, &factors)?;
            let what = || format!("other bits: {places:?} {is_turned}, {turn}");
            expect(found == want, &what())?;
        }
    }
    Ok(())
}

fn replays_copy_anew(device: &Device) -> Result<()> {
    let streams = [device.stream()?, device.stream()?];
    let [mut aligned, mut odd] = [aligned(device)?, factors(device, [[0, 0], [1, 0]], false)?];
    let (mut one, mut two) = (out(device)?, out(device)?);
    let mut graph = streams[0].capture(|stream| {
        launch(stream, &odd, &mut one)?;
        launch(stream, &odd, &mut two)
    })?;
    expect(graph.len() == 2, "copies count as launches")?;
    for seed in 2..6 {
        for factors in [&mut aligned, &mut odd] {
            for matrix in factors {
                let numbers = matrix.numbers(seed);
                matrix.array.copy_from_slice(&numbers)?;
            }
        }
        let want = product(&streams[0], &aligned)?;
        // In turns, without a wait in between.
        for stream in streams.iter().chain(&streams) {
            let [left, right] = &odd;
            graph.replay(stream, (&left.array, &right.array, &mut one, &mut two))?;
        }
        // Replays under way still use the copies of the launches whose place others take.
        graph.update(&streams[0], |stream| launch(stream, &odd, &mut one))?;
        graph.update(&streams[0], |stream| {
            launch(stream, &odd, &mut one)?;
            launch(stream, &odd, &mut two)
        })?;
        expect(
            bits(&one)? == want,
            "a replay has the numbers of another one",
        )?;
        expect(bits(&two)? == want, "the second launch has other bits")?;
    }
    Ok(())
}

fn copies_go(device: &Device) -> Result<()> {
    let want = product(&device.stream()?, &aligned(device)?)?;
    let streams = [device.stream()?, device.stream()?];
    let mut outs = Vec::new();
    for stream in streams.iter().chain(&streams) {
        let factors = factors(device, [[0, 0], [5, 0]], false)?;
        let (mut one, mut two) = (out(device)?, out(device)?);
        let graph = stream.capture(|stream| launch(stream, &factors, &mut two))?;
        launch(stream, &factors, &mut one)?;
        let [left, right] = &factors;
        graph.replay(stream, (&left.array, &right.array, &mut two))?;
        outs.extend([one, two]);
    }
    for out in &outs {
        expect(bits(out)? == want, "other bits where much was under way")?;
    }
    Ok(())
}
