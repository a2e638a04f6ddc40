//! The options of a compilation as command-line arguments.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use exactile::{Bounds, Determinism, IntoGrid, Options, Schedule, ScheduleField};
use exactile_kernels::Setting;

/// How kernels are compiled.
#[derive(Args, Clone)]
pub(crate) struct Settings {
    /// Which changes leave the bits alone: `exact`, `schedule_invariant`, `batch_invariant` or
    /// `not_guaranteed`
    #[arg(long, default_value = "exact", value_parser = determinism)]
    pub(crate) determinism: Determinism,
    #[command(flatten)]
    schedule: Scheduled,
}

impl Settings {
    /// Checked code with these settings.
    pub(crate) fn options(&self) -> Options {
        Options {
            determinism: self.determinism,
            bounds: Bounds::Checked,
            schedule: self.schedule.0,
        }
    }
}

/// The extents of a ready kernel's tile.
#[derive(Args, Clone, Copy)]
pub(crate) struct Tile {
    /// The tile size that a ready kernel varies, such as the rows of a tile; 0 leaves it to the kernel
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    block: usize,
    /// The second extent that a ready kernel varies, such as the columns of a tile; 0 leaves it to the kernel
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    width: usize,
}

impl Tile {
    pub(crate) fn is_stated(self) -> bool {
        self.block != 0 || self.width != 0
    }

    /// With these options.
    pub(crate) fn setting(self, options: &Options) -> Setting {
        Setting {
            block: self.block,
            width: self.width,
            schedule: options.schedule,
            determinism: options.determinism,
        }
    }
}

/// What a tuner would choose.
#[derive(Args, Clone)]
pub(crate) struct Stated {
    #[command(flatten)]
    tile: Tile,
    #[command(flatten)]
    schedule: Scheduled,
}

impl Stated {
    /// A setting of which something is stated.
    pub(crate) fn setting(&self) -> Option<Setting> {
        let options = Options {
            schedule: self.schedule.0,
            ..Options::default()
        };
        Some(self.tile.setting(&options)).filter(|setting| *setting != Setting::default())
    }
}

/// The schedule: an option for each of its fields.
#[derive(Clone)]
struct Scheduled(Schedule);

impl FromArgMatches for Scheduled {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut scheduled = Self(Schedule::AUTO);
        scheduled.update_from_arg_matches(matches)?;
        Ok(scheduled)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for &field in ScheduleField::ALL {
            if let Some(&value) = matches.get_one(field.row().name) {
                self.0.set(field, Some(value));
            }
        }
        Ok(())
    }
}

impl Args for Scheduled {
    fn augment_args(command: Command) -> Command {
        command.args(ScheduleField::ALL.iter().map(|field| {
            let row = field.row();
            Arg::new(row.name)
                .long(row.name)
                .help(row.about.trim().trim_end_matches('.'))
                .value_parser(|text: &str| scheduled(*field, text))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn scheduled(field: ScheduleField, text: &str) -> Result<u32, String> {
    let value = text.parse().map_err(|_| "expected a number".to_string())?;
    field.check(value, &field.range())?;
    Ok(value)
}

pub(crate) fn determinism(text: &str) -> Result<Determinism, String> {
    Determinism::ALL
        .into_iter()
        .find(|level| level.name() == text)
        .ok_or_else(|| {
            let names: Vec<&str> = Determinism::ALL.iter().map(|level| level.name()).collect();
            format!("expected `{}`", names.join("`, `"))
        })
}

/// Extents such as `8`, `8,4` or `8,4,2`.
pub(crate) fn grid(text: &str) -> Result<[u32; 3], String> {
    let extents: Vec<u64> = text
        .split(',')
        .map(|extent| extent.trim().parse())
        .collect::<Result<_, _>>()
        .map_err(|_| "expected extents such as `8` or `8,4`".to_string())?;
    let grid = match extents[..] {
        [x] => x.into_grid(),
        [x, y] => (x, y).into_grid(),
        [x, y, z] => (x, y, z).into_grid(),
        _ => {
            return Err(format!(
                "found {} extents, expected at most 3",
                extents.len()
            ));
        }
    };
    grid.map_err(|error| error.to_string())
}
