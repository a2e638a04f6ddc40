//! Says what sources the compiler is made of.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    exactile_fingerprint::export()
}
