//! The loops of PTX, each of which is to be entered in one place.

use std::collections::BTreeMap;

use petgraph::Graph;
use petgraph::algo::dominators::simple_fast;
use petgraph::algo::toposort;
use petgraph::graph::NodeIndex;

use crate::error::{Error, Result};

/// Refuses `ptx` with a loop that is entered in two places.
///
/// `ptxas` 13.0 takes such a loop for none. Lanes of a warp that a branch before the loop has parted then come together behind it only, and
/// shuffles in the loop give other bits. Without the jumps to blocks that all ways to the jump pass, only such loops are left
/// (Hecht and Ullman, "Flow graph reducibility", 1972).
///
/// # Errors
/// When there is one, by a label in it.
pub(crate) fn check(ptx: &str) -> Result<()> {
    let (mut blocks, first) = blocks(ptx);
    let dominators = simple_fast(&blocks, first);
    blocks.retain_edges(|blocks, jump| {
        let ends = blocks.edge_endpoints(jump);
        ends.is_some_and(|(from, to)| {
            let passed = dominators.dominators(from);
            passed.is_some() && !passed.into_iter().flatten().any(|block| block == to)
        })
    });
    match toposort(&blocks, None) {
        Ok(_) => Ok(()),
        Err(cycle) => {
            let label = blocks.node_weight(cycle.node_id()).copied();
            Err(Error::Llvm(format!(
                "the loop at `{}` is entered in two places, of which assemblers make wrong code; use other warps or another tile",
                label.unwrap_or_default()
            )))
        }
    }
}

/// The blocks of `ptx` by their labels, with an edge for each way from one to another, and the first of them. Labels of
/// assembly that an author has written, which begin otherwise, are no blocks.
fn blocks(ptx: &str) -> (Graph<&str, ()>, NodeIndex) {
    let mut blocks = Graph::new();
    let first = blocks.add_node("");
    let (mut block, mut goes_on) = (first, true);
    let (mut labels, mut jumps) = (BTreeMap::new(), Vec::new());
    for line in ptx.lines() {
        let mut line = line.split("//").next().unwrap_or_default().trim();
        if let Some((label, rest)) = line.split_once(':').filter(|it| it.0.starts_with('$')) {
            let next = blocks.add_node(label);
            labels.insert(label, next);
            if goes_on {
                blocks.add_edge(block, next, ());
            }
            (block, goes_on, line) = (next, true, rest);
        }
        if [".entry ", ".func "].iter().any(|it| line.contains(it)) {
            block = blocks.add_node(line);
            blocks.add_edge(first, block, ());
            goes_on = true;
        }
        let words = || line.split([' ', '\t', ',', ';']);
        let named = words().filter(|word| word.starts_with('$'));
        jumps.extend(named.map(|label| (block, label)));
        let ends = words().next().is_some_and(|instruction| {
            let operation = instruction.split('.').next();
            matches!(operation, Some("bra" | "brx" | "ret" | "exit" | "trap"))
        });
        goes_on &= !ends;
    }
    for (from, label) in jumps {
        if let Some(&to) = labels.get(label) {
            blocks.add_edge(from, to, ());
        }
    }
    (blocks, first)
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_loop_is_entered_in_one_place() {
        let twice = "$a:\n@%p1 bra $c;\n$b:\nmov.b32 %r1, 0;\n$c:\n@%p2 bra $b;\nret;";
        check("$a:\n@%p1 bra $c;\n$b: // a loop\n\t@%p2 bra \t$b;\n$c:\nret;")
            .expect("has one entry");
        check("@%p1 bra $b;\n$a:\n@%p2 bra.uni $b;\nbra $a;\n$b:\nret;").expect("has one entry");
        let table = "$t: .branchtargets\n$a,\n$b;\nbrx.idx %r1, $t;\n";
        check(&format!("{table}$a:\n$b:\nret;")).expect("has none");
        check(&format!("{table}$a:\n$b:\n@%p1 bra $a;\nret;")).expect_err("has two entries");
        let function = ".func f()\n{\nret;\n}\n.visible .entry g()\n{\n";
        check(&format!("{function}$a:\n@%p1 bra $a;\nret;\n}}")).expect("has one entry");
        check(&format!("{function}{twice}\n}}")).expect_err("has two entries");
        check("$a:\nret;\n$b:\n$c:\n@%p2 bra $b;\n@%p3 bra $c;\nret;").expect("is never reached");
        let error = check(twice).expect_err("has two entries").to_string();
        assert!(error.contains("is entered in two places"), "{error}");
        check(&twice.replace("@%p1 bra $c", "trap")).expect("nothing reaches the loop");
    }
}
