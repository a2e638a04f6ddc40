//! Code for GPUs that is built ahead of time: what launches would find, and what is refused. No GPU is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use exactile::built::{Build, Built, Form};
use exactile::prelude::*;
use exactile::{Determinism, Error, Result, Target, assert_bits_equal, internals};

const TARGET: Target = Target::SM_90A;

/// A folder of its own, that is not there yet.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("built_{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

#[kernel]
fn scale<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    store(y + at, load(x + at).mask(inside) * 3.0).mask(inside);
}

/// Rows whose ends launches tell.
#[kernel]
fn centre<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, columns: i32) {
    let (start, at) = (program_id(0) * columns, arange(0, BLOCK));
    let row = load(x + start + at).mask(at < columns).other(0.0);
    store(y + start + at, row - row.sum(0)).mask(at < columns);
}

/// Launches `scale` for `n` elements of blocks.
fn scale_by(block: usize, n: i32) -> impl FnOnce(&Device) -> Result<()> {
    move |device| {
        let x = Buffer::<f32>::zeros(device, 64)?;
        let mut y = Buffer::zeros(device, 64)?;
        scale().block(block).launch(device, 4, (&x, &mut y, n))
    }
}

fn centre_rows(columns: usize) -> impl FnOnce(&Device) -> Result<()> {
    move |device| {
        let x = Buffer::<f32>::zeros(device, 2 * columns)?;
        let mut y = Buffer::zeros(device, 2 * columns)?;
        centre()
            .block(1024)
            .launch(device, 2, (&x, &mut y, columns as i32))
    }
}

fn build(folder: &Path, work: impl FnOnce(&Device) -> Result<()>) -> Built {
    let mut build = Build::new(folder, &TARGET).expect("begins");
    build.add(work).expect("builds");
    build.finish().expect("ends")
}

fn refused(found: Result<impl Sized>) -> String {
    match found {
        Ok(_) => panic!("it is taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_was_built_is_found_by_launches_like_those() {
    let folder = folder("found");
    let built = build(&folder, scale_by(8, 32));
    // A checked launch, and those that it proves in bounds.
    let variants: Vec<&str> = built
        .records()
        .iter()
        .map(|it| it.variant.as_str())
        .collect();
    assert_eq!(variants.len(), 2);
    assert!(variants.contains(&"checked-direct") && variants.contains(&"unchecked-direct"));
    for record in built.records() {
        assert_eq!(
            (record.kernel.as_str(), record.target.as_str()),
            ("scale", "sm_90a")
        );
        assert!(record.config.contains("block: 8"), "{}", record.config);
        assert_eq!(record.known, "16,16,16");
        assert_eq!(
            record.form == Form::Cubin,
            std::env::var_os("EXACTILE_PTXAS").is_some()
        );
    }
    built.verify().expect("is whole");
    let again = Built::open(&folder).expect("opens");
    assert_eq!(again.records(), built.records());
    // The same is known of 16 as of 32.
    for n in [32, 16] {
        again.check(&TARGET, scale_by(8, n)).expect("is found");
    }
    for (block, n, known) in [
        (8, 17, "16,16,1)"),
        (16, 32, "16,16,16)"),
        (8, 1, "16,16,one)"),
    ] {
        let found = again.check(&TARGET, scale_by(block, n));
        assert!(matches!(found, Err(Error::NotBuilt { .. })), "{block} {n}");
        let message = refused(found);
        for part in [
            "kernel `scale`",
            &format!("block: {block}"),
            "sm_90a",
            "checked-direct",
            known,
            "`exactile::built::Build`",
            "`exactile build`",
            "of this kernel 2 codes were built: ",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn other_machines_kernels_and_levels_find_nothing() {
    let again = build(&folder("others"), scale_by(8, 32));
    let other = again.check(&Target::SM_80, scale_by(8, 32));
    assert!(refused(other).contains("no code for sm_80"));
    let message = refused(again.check(&TARGET, centre_rows(1000)));
    assert!(message.contains("nothing was built"), "{message}");
    assert!(refused(again.check(&Target::CPU, scale_by(8, 32))).contains("`cpu`"));
    let level = |device: &Device| {
        let mut y = Buffer::<f32>::zeros(device, 64)?;
        let x = Buffer::zeros(device, 64)?;
        let kernel = scale().block(8).determinism(Determinism::NotGuaranteed);
        kernel.launch(device, 4, (&x, &mut y, 32))
    };
    assert!(again.check(&TARGET, level).is_err());
}

#[test]
fn rows_that_end_elsewhere_find_general_code() {
    let built = build(&folder("rows"), centre_rows(520));
    // Of half of the tile, and of launches that end in other sixteenths of it; the same divides all of them.
    assert_eq!(built.records().len(), 4);
    let known = |word: &str| built.records().iter().filter(|it| it.known == word).count();
    assert_eq!([known("16,16,8"), known("16,16,8,ends")], [2, 2]);
    for columns in [520, 328, 1000] {
        built
            .check(&TARGET, centre_rows(columns))
            .expect("is found");
    }
    let general = build(&folder("rows_general"), centre_rows(1000));
    assert_eq!(general.records().len(), 2);
    general
        .check(&TARGET, centre_rows(520))
        .expect("does without the code that knows more");
}

#[test]
fn folders_grow_and_keep_nothing_that_is_not_listed() {
    let folder = folder("grows");
    build(&folder, scale_by(8, 32));
    let stray = folder.join(format!("{}.entry", "ab".repeat(32)));
    let own = folder.join("notes.entry");
    for file in [&stray, &own] {
        fs::write(file, "stray").expect("is written");
    }
    let built = build(&folder, scale_by(16, 32));
    assert_eq!(built.records().len(), 4);
    // What is not named as code is somebody's own.
    assert!(!stray.exists() && own.exists());
    fs::remove_file(own).expect("is there");
    let mut sm_80 = Build::new(&folder, &Target::SM_80).expect("begins");
    assert_eq!(sm_80.add(scale_by(8, 32)).expect("builds").len(), 2);
    assert_eq!(sm_80.add(scale_by(8, 16)).expect("builds").len(), 0);
    let built = sm_80.finish().expect("ends");
    assert_eq!(built.records().len(), 6);
    for target in [TARGET, Target::SM_80] {
        built.check(&target, scale_by(8, 32)).expect("is found");
    }
    // Of a list of another compiler nothing stays.
    let manifest = folder.join("manifest");
    let text = fs::read_to_string(&manifest).expect("is read");
    fs::write(&manifest, text.replacen("exactile 0.", "exactile 9.", 1)).expect("is written");
    assert_eq!(build(&folder, scale_by(8, 32)).records().len(), 2);
    let files = fs::read_dir(&folder).expect("is read").count();
    assert_eq!(files, 3);
}

#[test]
fn what_is_wrong_with_a_folder_is_told() {
    let folder = folder("wrong");
    let absent = refused(Built::open(&folder));
    assert!(absent.contains("manifest"), "{absent}");
    let built = build(&folder, scale_by(8, 32));
    let manifest = folder.join("manifest");
    let text = fs::read_to_string(&manifest).expect("is read");
    for (part, other, reason) in [
        ("records 2\n", "", "no whole list"),
        ("exactile build 1", "exactile build 2", "no whole list"),
        ("exactile-core 0.", "exactile-core 9.", "by other sources"),
    ] {
        fs::write(&manifest, text.replacen(part, other, 1)).expect("is written");
        let message = refused(Built::open(&folder));
        assert!(message.contains(reason), "{message}");
    }
    fs::write(&manifest, &text).expect("is written");
    for record in built.records() {
        let path = built.path(record);
        let bytes = fs::read(&path).expect("is read");
        fs::write(&path, &bytes[..bytes.len() / 2]).expect("is written");
        let message = refused(Built::open(&folder));
        assert!(message.contains(" that were written"), "{message}");
        fs::remove_file(&path).expect("is removed");
        let message = refused(Built::open(&folder));
        assert!(message.contains(&record_name(&path)), "{message}");
        // As long as it was, and found when the code is needed.
        let mut flipped = bytes.clone();
        flipped[100] ^= 1;
        fs::write(&path, &flipped).expect("is written");
        let opened = Built::open(&folder).expect("is as long");
        assert!(refused(opened.verify()).contains("checksum"));
        let message = refused(opened.check(&TARGET, scale_by(8, 32)));
        assert!(
            message.contains("checksum") && message.contains(&record_name(&path)),
            "{message}"
        );
        fs::write(&path, &bytes).expect("is written");
    }
    // Another code under the name of this one.
    let [one, other] = built.records() else {
        panic!("two codes")
    };
    fs::copy(built.path(one), built.path(other)).expect("is copied");
    let message = refused(built.check(&TARGET, scale_by(8, 32)));
    assert!(message.contains("another key"), "{message}");
}

#[test]
fn a_folder_is_built_into_once_at_a_time_and_overwrites_nobodys_file() {
    let folder = folder("taken");
    let mut first = Build::new(&folder, &TARGET).expect("begins");
    first.add(scale_by(8, 32)).expect("builds");
    let message = refused(Build::new(&folder, &TARGET));
    assert!(
        message.contains("another build into this folder is under way"),
        "{message}"
    );
    first.finish().expect("ends").verify().expect("is whole");
    assert_eq!(build(&folder, scale_by(16, 32)).records().len(), 4);
    let manifest = folder.join("manifest");
    fs::write(&manifest, "a list of my own").expect("is written");
    let message = refused(Build::new(&folder, &TARGET));
    assert!(
        message.contains("it is no list of a build and would be overwritten"),
        "{message}"
    );
    let kept = fs::read_to_string(&manifest).expect("is read");
    assert_eq!(kept, "a list of my own");
}

fn record_name(path: &Path) -> String {
    path.file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

/// Where there is a GPU: the bits and the errors of built code are those of the CPU.
#[test]
fn a_gpu_runs_what_was_built() {
    let Ok(gpu) = Device::cuda(0) else { return };
    let target = internals::gpu(&gpu).expect("is one").target();
    let run = |device: &Device, n: i32| {
        let numbers: Vec<f32> = (0..64).map(|index| index as f32 / 8.0).collect();
        let x = Buffer::from_slice(device, &numbers)?;
        let mut y = Buffer::zeros(device, 64)?;
        let kernel = scale().block(32);
        for _ in 0..2 {
            kernel.launch(device, 3, (&x, &mut y, n))?;
        }
        y.to_vec()
    };
    let mut build = Build::new(folder("gpu"), &target).expect("begins");
    let work = |device: &Device| run(device, 48).map(drop);
    build.add(work).expect("builds");
    gpu.use_built(&build.finish().expect("ends"));
    let golden = run(&Device::cpu(), 48).expect("runs");
    assert_bits_equal(&run(&gpu, 48).expect("runs"), &golden);
    let messages = [&gpu, &Device::cpu()].map(|device| refused(run(device, 80)));
    assert_eq!(messages[0], messages[1]);
}

#[test]
fn nothing_is_built_of_nothing() {
    let folder = folder("nothing");
    assert!(refused(Build::new(&folder, &Target::CPU)).contains("`cpu`"));
    let mut build = Build::new(&folder, &TARGET).expect("begins");
    assert!(refused(build.add(|_| Ok(()))).contains("nothing was launched"));
    let failing = |_: &Device| Err(Error::Invalid("on purpose".to_string()));
    assert!(refused(build.add(failing)).contains("on purpose"));
    assert_eq!(build.finish().expect("ends").records().len(), 0);
    let file = folder.join("manifest");
    assert!(Build::new(&file, &TARGET).is_err());
}

fn exactile(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exactile"));
    command.args(arguments).env_remove("EXACTILE_PTXAS");
    command.output().expect("the command starts")
}

#[test]
fn the_command_builds_kernels_and_lists_them() {
    let folder = folder("command");
    let out = folder.to_str().expect("is UTF-8");
    let output = exactile(&[
        "build",
        "--out",
        out,
        "--target",
        "sm_90a,sm_80",
        "vector_add",
        "mean",
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 11, "{text}");
    assert!(
        lines[0].starts_with("vector_add") && lines[0].contains(" sm_90a "),
        "{text}"
    );
    let built = Built::open(&folder).expect("opens");
    built.verify().expect("is whole");
    let count = built.records().len();
    assert!(lines[10].starts_with(&format!("{count} codes, ")), "{text}");
    let listed = exactile(&["built", out]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.lines().count(), count + 1);
    assert!(
        listed.ends_with(&format!("{count} codes are whole\n")),
        "{listed}"
    );
    let run = exactile(&["built", out, "--run"]);
    // Where there is no GPU, that is the error.
    assert_eq!(run.status.success(), Device::cuda(0).is_ok());
    let path = built.path(&built.records()[0]);
    let mut bytes = fs::read(&path).expect("is read");
    bytes[100] ^= 1;
    fs::write(&path, &bytes).expect("is written");
    let damaged = exactile(&["built", out]);
    let message = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert!(
        !damaged.status.success() && message.contains("checksum"),
        "{message}"
    );
    for (arguments, part) in [
        (vec!["--target", "cpu"], "`cpu`"),
        (
            vec!["--target", "sm_90a", "softmix"],
            "there is no kernel `softmix`",
        ),
    ] {
        let output = exactile(&[&["build", "--out", out], &arguments[..]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && message.contains(part),
            "{message}"
        );
    }
}
