//! Which values follow from themselves an iteration ago: the cycles that loops close.
//!
//! Source: Tarjan, Depth-first search and linear graph algorithms, SIAM Journal on Computing 1, 1972.

use crate::entity::EntityMap;
use crate::ir::{Func, Value};

/// The cycle that each value is on, by a number; nothing for a value that does not follow from itself.
pub(super) struct Recurrences(EntityMap<Value, Option<u32>>);

impl Recurrences {
    pub(super) fn of(func: &Func) -> Self {
        let mut search = Search::new(followers(func));
        for value in func.values() {
            search.start(value);
        }
        Self(search.cycles)
    }

    /// Whether both values are on one cycle.
    pub(super) fn share(&self, a: Value, b: Value) -> bool {
        self.0[a].is_some() && self.0[a] == self.0[b]
    }

    /// The cycle that a value is on.
    pub(super) fn of_value(&self, value: Value) -> Option<u32> {
        self.0[value]
    }
}

/// The values that follow from each one directly.
fn followers(func: &Func) -> EntityMap<Value, Vec<Value>> {
    let mut followers: EntityMap<Value, Vec<Value>> =
        EntityMap::filled(func.value_count(), Vec::new());
    for inst in func.all_insts() {
        let data = func.inst(inst);
        if func.deciding(inst).is_some() {
            for (value, sources) in func.carried(inst).iter().flat_map(|it| it.flows()) {
                for source in sources {
                    followers[source].push(value);
                }
            }
            continue;
        }
        // What a combiner captures flows into what it yields.
        let regions = data.op.regions();
        let yielded = regions.iter().flat_map(|&region| func.yielded(region));
        for source in data.op.operands().iter().chain(yielded) {
            followers[*source].extend(&data.results);
        }
    }
    followers
}

/// A search of the strongly connected parts, without recursion.
struct Search {
    followers: EntityMap<Value, Vec<Value>>,
    /// When a value was met, and the earliest one that is open and that it leads to.
    met: EntityMap<Value, Option<(u32, u32)>>,
    count: u32,
    open: Vec<Value>,
    is_open: EntityMap<Value, bool>,
    cycles: EntityMap<Value, Option<u32>>,
}

impl Search {
    fn new(followers: EntityMap<Value, Vec<Value>>) -> Self {
        let count = followers.len();
        Self {
            followers,
            met: EntityMap::filled(count, None),
            count: 0,
            open: Vec::new(),
            is_open: EntityMap::filled(count, false),
            cycles: EntityMap::filled(count, None),
        }
    }

    fn start(&mut self, value: Value) {
        if self.met[value].is_some() {
            return;
        }
        let mut path = vec![(value, 0)];
        self.meet(value);
        while let Some((value, next)) = path.last_mut() {
            let value = *value;
            let follower = self.followers[value].get(*next).copied();
            *next += 1;
            match follower {
                Some(follower) if self.met[follower].is_none() => {
                    self.meet(follower);
                    path.push((follower, 0));
                }
                Some(follower) => {
                    if self.is_open[follower] {
                        self.leads_to(value, self.times(follower).0);
                    }
                }
                None => {
                    path.pop();
                    self.close(value);
                    if let Some(&(before, _)) = path.last() {
                        self.leads_to(before, self.times(value).1);
                    }
                }
            }
        }
    }

    fn meet(&mut self, value: Value) {
        self.met[value] = Some((self.count, self.count));
        self.count += 1;
        self.open.push(value);
        self.is_open[value] = true;
    }

    fn times(&self, value: Value) -> (u32, u32) {
        self.met[value].expect("broken invariant: the value was met")
    }

    fn leads_to(&mut self, value: Value, time: u32) {
        let (own, earliest) = self.times(value);
        self.met[value] = Some((own, earliest.min(time)));
    }

    /// Takes the part that begins with `value` from the open ones, if one does.
    fn close(&mut self, value: Value) {
        let (own, earliest) = self.times(value);
        if own != earliest {
            return;
        }
        let alone = self.open.last() == Some(&value) && !self.followers[value].contains(&value);
        while let Some(part) = self.open.pop() {
            self.is_open[part] = false;
            self.cycles[part] = (!alone).then_some(own);
            if part == value {
                break;
            }
        }
    }
}
