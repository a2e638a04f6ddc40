//! `exactile ops`: every op of the IR with its stages and meaning.

use clap::Args;
use exactile::Result;
use exactile_core::ir::op::STRUCTURAL;
use exactile_core::ir::{BinaryOp, CompareOp, Kind, Stage, TernaryOp, UnaryOp};
use serde::Serialize;

/// Lists the ops of the IR.
#[derive(Args)]
pub(crate) struct Ops {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    stages: Vec<&'static str>,
    meaning: &'static str,
}

impl Ops {
    pub(crate) fn execute(&self) -> Result<()> {
        let rows = rows();
        if self.json {
            return super::print_json(&rows);
        }
        let text: String = rows
            .iter()
            .map(|row| {
                format!(
                    "{:18} {:12} {}\n",
                    row.name,
                    row.stages.join(" "),
                    row.meaning
                )
            })
            .collect();
        super::print(&text)
    }
}

fn rows() -> Vec<Row> {
    let both = vec![Stage::Block.word(), Stage::Lane.word()];
    let scalar = |name, summary: &'static str, kind: Kind| Row {
        name,
        stages: match kind {
            Kind::Derived => vec![Stage::Block.word()],
            Kind::Primitive | Kind::Approximate => both.clone(),
        },
        meaning: summary.trim(),
    };
    let mut rows = Vec::new();
    macro_rules! family {
        ($($Family:ident)*) => { $(
            for op in $Family::ALL {
                rows.push(scalar(op.mnemonic(), op.summary(), op.kind()));
            }
        )* };
    }
    family!(UnaryOp BinaryOp TernaryOp CompareOp);
    for (name, summary, stages) in STRUCTURAL {
        rows.push(Row {
            name,
            stages: stages.iter().map(|stage| stage.word()).collect(),
            meaning: summary.trim(),
        });
    }
    rows
}
