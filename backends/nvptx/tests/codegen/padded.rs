//! The kernels that copy rows: that they are made of their source, what they copy, and what assemblers make of them.

use std::path::Path;

use exactile_core::facts::Facts;
use exactile_core::interp::block;
use exactile_core::ir::{DType, Literal};
use exactile_core::launch::{Argument, ArrayNumbers, PADDED_TILE, PaddedRows};
use exactile_core::pipeline;
use exactile_core::target::{Bounds, Determinism, Options, Schedule, Target};
use exactile_core::text::parse;
use exactile_core::verify::{self, BlockFunc};
use exactile_nvptx::{Ptx, emit, generator};

use crate::{assemble, count};

const SOURCE: &str = include_str!("../../src/padded/rows.bir");

/// What the memory of a copy begins at a multiple of.
const ALIGN: usize = 128;

const WORDS: [&str; 3] = ["u8", "u16", "u32"];

fn source(word: &str) -> BlockFunc {
    let func = parse(&SOURCE.replace("WORD", word), "rows.bir").expect("parses");
    verify::block(func).expect("is valid")
}

fn made(word: &str) -> Ptx {
    let options = Options {
        determinism: Determinism::Exact,
        bounds: Bounds::Unchecked,
        schedule: Schedule::AUTO.warps(8),
    };
    let facts = Facts {
        apart: true,
        inside: true,
        ..Facts::default()
    };
    let (target, observe) = (&Target::SM_80, &mut pipeline::unobserved);
    let lane = pipeline::compile(source(word), target, &options, &facts, observe);
    let lane = lane.expect("compiles");
    emit(&lane, target, &lane.name).expect("is emitted")
}

/// `BLESS=1` writes them anew.
#[test]
fn kernels_that_copy_rows_are_made_of_their_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/padded");
    for word in WORDS {
        let (path, found) = (folder.join(format!("{word}.kernel")), made(word).to_bytes());
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &found).expect("is written");
        }
        let recorded = std::fs::read(&path).expect("is there");
        let read = Ptx::from_bytes(&recorded).expect("is a kernel");
        assert_eq!(read.parameters().len(), 6);
        assert!(
            found == recorded,
            "{} is not what {} makes of rows.bir: write it anew by BLESS=1",
            path.display(),
            generator()
        );
    }
}

/// What stands in place of the words between rows stays.
#[test]
fn rows_are_copied_to_where_they_begin_further_apart() {
    for (rows, columns, stride) in [(1, 1, 1), (9, 257, 259), (8, 256, 300), (3, 300, 301)] {
        let array = ArrayNumbers {
            address: 2,
            extents: vec![rows, columns],
            strides: vec![2 * stride],
        };
        let plan = PaddedRows::of(&array, 2).expect("is copied");
        assert_eq!((plan.word, plan.columns), (2, columns));
        let words: Vec<u16> = (0..rows * stride).map(|at| (at * 7919) as u16).collect();
        let mut copy = vec![0xabab_u16; (plan.rows * plan.pitch) as usize];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let bytes = &bytes[..plan.source_bytes() as usize];
        let mut memory = vec![0xab_u8; 2 * copy.len() + ALIGN];
        let begin = memory.as_ptr().align_offset(ALIGN);
        let room = &mut memory[begin..][..2 * copy.len()];
        let number = |bits| Argument::Scalar(Literal::from_bits(DType::I64, bits));
        let mut arguments = [
            Argument::Read(bytes),
            Argument::ReadWrite(room),
            number(plan.rows),
            number(plan.columns),
            number(plan.stride),
            number(plan.pitch),
        ];
        block::run(&source("u16"), plan.grid(), &mut arguments).expect("runs");
        for row in 0..rows {
            for column in 0..columns {
                copy[(row * plan.pitch + column) as usize] =
                    words[(row * stride + column) as usize];
            }
        }
        let expected: Vec<u8> = copy.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let room = &memory[begin..][..expected.len()];
        assert_eq!(room, expected, "{rows} {columns} {stride}");
    }
}

#[test]
fn tiles_of_copies_are_those_of_their_source() {
    let [rows, columns] = PADDED_TILE;
    assert!(SOURCE.contains(&format!(
        "tile_load %from, [%row, %column] : tile<{rows}x{columns}xWORD>"
    )));
}

/// A lane loads its words one by one, all at once, and stores pieces of 16 bytes where all of them are there.
#[test]
fn copies_of_rows_assemble() {
    for (word, loads, stores) in [("u8", 8, 1), ("u16", 8, 1), ("u32", 8, 2)] {
        let ptx = made(word);
        let whole = ptx.text().split("$L__BB0_2:").next().expect("is the first");
        assert_eq!(whole.matches("ld.global").count(), loads, "{whole}");
        assert_eq!(whole.matches("st.global.v").count(), stores, "{whole}");
        if let Some(assembled) = assemble(&ptx) {
            let report = &assembled.report;
            assert!(report.contains("0 bytes spill stores"), "{report}");
            assert_eq!(count(&assembled, "LDS") + count(&assembled, "SHFL"), 0);
        }
    }
}
