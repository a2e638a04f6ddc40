//! Says what sources the facade is made of.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    exactile_fingerprint::export()
}
