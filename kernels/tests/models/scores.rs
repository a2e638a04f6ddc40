//! Scores of classes and of tokens against plain Rust.

use exactile_kernels::{cross_entropy, log_softmax};

use super::super::{assert_close, buffer, numbers, run};
use super::{integers, sizes};

#[test]
fn classes_have_losses() {
    let [rows, columns] = [4, 5003];
    let x: Vec<f32> = numbers(rows * columns).iter().map(|x| x * 9.0).collect();
    let classes = [5002, 0, -1, 1234];
    let (scores, chosen) = (buffer(&x), integers(&classes));
    let got = run(&sizes([256, 1024, 8192]), rows, |out, setting| {
        cross_entropy(&scores, &chosen, out, [rows, columns], setting)
    });
    let want: Vec<f32> = x
        .chunks(columns)
        .zip(classes)
        .map(|(row, class)| cross_entropy::reference(row, class))
        .collect();
    assert_close(&got, &want);
}

#[test]
fn rows_become_logarithms_of_shares() {
    let shape @ [_, columns] = [3, 2503];
    let x: Vec<f32> = numbers(3 * 2503).iter().map(|x| x * 9.0).collect();
    let scores = buffer(&x);
    let got = run(&sizes([256, 1024, 4096]), x.len(), |out, setting| {
        log_softmax(&scores, out, shape, setting)
    });
    for (got, row) in got.chunks(columns).zip(x.chunks(columns)) {
        assert_close(got, &log_softmax::reference(row));
    }
}
