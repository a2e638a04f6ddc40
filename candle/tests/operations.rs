//! Operations of candle that are kernels: on the CPU the golden run, on a GPU the same bits.

use candle_core::{DType, Device, Result, Tensor};
use exactile::prelude::*;
use exactile_candle::{Op1, Op2};

#[kernel(BLOCK = 64)]
fn softmax_rows<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, columns: i32) {
    let at = arange(0, BLOCK);
    let (inside, start) = (at < columns, program_id(0) * columns);
    let row = load(x + start + at).mask(inside).other(f64::NEG_INFINITY);
    let e = exp(row - row.max(0));
    store(out + start + at, e / e.sum(0)).mask(inside);
}

#[kernel(BLOCK = 64)]
fn add_all<const BLOCK: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    let sum = load(x + at).mask(inside) + load(y + at).mask(inside);
    store(out + at, sum).mask(inside);
}

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::Cpu];
    if cfg!(feature = "cuda") {
        devices.push(Device::new_cuda(0).expect("a GPU, since the feature is on"));
    }
    devices
}

fn softmax(x: &Tensor) -> Result<Tensor> {
    let softmax = Op1::<f32, _>::new("softmax", |queue, x, extents, out| {
        let [rows, columns] = [extents[0], extents[1]];
        let kernel = softmax_rows();
        kernel.launch(queue, rows, (x, out, columns as i32))
    });
    x.apply_op1_no_bwd(&softmax)
}

fn add(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let add = Op2::<f32, _>::new("add", |queue, [x, y], [extents, _], out| {
        let n: usize = extents.iter().product();
        let kernel = add_all();
        kernel.launch(queue, n.div_ceil(64), (x, y, out, n as i32))
    });
    x.apply_op2_no_bwd(y, &add)
}

#[test]
fn tensors_have_the_same_bits_on_all_devices() -> Result<()> {
    let numbers: Vec<f32> = (0..6 * 50).map(|i| (i * 37 % 101) as f32 / 8.0).collect();
    let golden = |x: &[f32]| {
        let device = exactile::Device::cpu();
        let mut out = Buffer::zeros(&device, x.len())?;
        let x = Buffer::from_slice(&device, x)?;
        let kernel = softmax_rows();
        kernel.run(&device, x.len() / 50, (&x, &mut out, 50))?;
        out.to_vec()
    };
    let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<_>>();
    for device in devices() {
        let x = Tensor::from_slice(&numbers, (6, 50), &device)?;
        // A part of a storage, which begins behind its first number.
        let part = x.narrow(0, 2, 3)?;
        for (x, numbers) in [(&x, &numbers[..]), (&part, &numbers[100..250])] {
            let found = softmax(x)?.flatten_all()?.to_vec1()?;
            let wanted = golden(numbers).expect("runs");
            assert_eq!(bits(found), bits(wanted), "{device:?}");
            // In the order of candle's own work.
            let sum = add(&(x * 2.0)?, &softmax(x)?)?;
            let theirs = ((x * 2.0)? + softmax(x)?)?;
            let [sum, theirs] = [sum, theirs].map(|it| it.flatten_all()?.to_vec1::<f32>());
            assert_eq!(bits(sum?), bits(theirs?), "{device:?}");
        }
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error() -> Result<()> {
    for device in devices() {
        let x = Tensor::zeros((4, 8), DType::F32, &device)?;
        let message = softmax(&x.t()?)
            .map(drop)
            .expect_err("is refused")
            .to_string();
        assert!(
            message.contains("`softmax` takes tensors in row-major order"),
            "{message}"
        );
        let x = Tensor::zeros((4, 8), DType::F64, &device)?;
        softmax(&x).map(drop).expect_err("of another type");
    }
    // Too few numbers: the access out of bounds is an error of the operation.
    let [x, y] = [6, 5].map(|n| Tensor::zeros(n, DType::F32, &Device::Cpu));
    let message = add(&x?, &y?).map(drop).expect_err("is outside").to_string();
    assert!(
        message.contains("accesses element 5 of `y`, which has 5"),
        "{message}"
    );
    Ok(())
}
