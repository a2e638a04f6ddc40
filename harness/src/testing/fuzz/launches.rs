//! Launches of several kernels by several threads at once on one device, which compiles them
//! meanwhile: what a thread alone gets, each time.

use std::thread;

use exactile::Device;
use exactile_kernels::Setting;

use crate::cases::subjects::{Size, subjects};
use crate::testing::programs::guarded;
use exactile_core::random::Random;

const THREADS: usize = 6;
const KERNELS: usize = 3;

/// How often each thread launches each kernel.
const LAUNCHES: usize = 3;

/// The bytes of a kernel's outputs.
type Results = Vec<Vec<u8>>;

/// Tries one set of kernels; what is wrong, if anything is, and what was launched.
pub(super) fn case(random: &mut Random) -> Option<(String, String)> {
    let all = subjects(Size::Quick);
    let chosen: Vec<(usize, Setting)> = (0..KERNELS)
        .map(|_| {
            let index = random.below(all.len());
            (index, random.pick(&all[index].candidates))
        })
        .collect();
    let shown = |&(index, setting): &(usize, Setting)| {
        let case = &all[index].case;
        format!(
            "{} of {} {:?}: {setting:?}",
            case.kernel, case.dtype, case.shape
        )
    };
    let input = || chosen.iter().map(shown).collect::<Vec<_>>().join("\n");
    match guarded(|| judged(&chosen)) {
        Ok(()) => None,
        Err(message) => Some((message, input())),
    }
}

fn judged(chosen: &[(usize, Setting)]) -> Result<(), String> {
    let alone = Device::cpu();
    let want = chosen.iter().map(|&one| launched(&alone, one));
    let want: Vec<Vec<Results>> = want.collect::<Result<_, String>>()?;
    let device = Device::cpu();
    let one_thread = |first: usize| {
        for turn in 0..KERNELS {
            let index = (first + turn) % KERNELS;
            if launched(&device, chosen[index])? != want[index] {
                return Err("other bits where threads launch at once".to_string());
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| scope.spawn(move || guarded(|| one_thread(first))))
            .collect();
        let mut ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended.try_for_each(|it| it.unwrap_or_else(|_| Err("a thread panicked".to_string())))
    })
}

/// The outputs after each of some launches.
fn launched(device: &Device, (index, setting): (usize, Setting)) -> Result<Vec<Results>, String> {
    let launches = || -> exactile::Result<Vec<Results>> {
        let subject = subjects(Size::Quick).swap_remove(index);
        let mut problem = (subject.case.setup)(device)?;
        let launch = |_| {
            problem.spoil()?;
            problem.launch(&setting)?;
            let outputs = problem.outputs()?;
            Ok(outputs.iter().map(|array| array.bytes().to_vec()).collect())
        };
        (0..LAUNCHES).map(launch).collect()
    };
    launches().map_err(|error| error.to_string())
}
