//! What a lock file says of the packages that one is built from.

use std::collections::BTreeMap;

/// A package as a lock file has it.
#[derive(Default)]
struct Package<'a> {
    /// Its name, version, source and checksum.
    lines: Vec<&'a str>,
    /// Names, with the version where there are several.
    dependencies: Vec<&'a str>,
}

/// The packages that `name` rests on, with their versions and checksums.
pub(crate) fn below(lock: &str, name: &str) -> String {
    let mut packages: BTreeMap<&str, Vec<Package<'_>>> = BTreeMap::new();
    for text in lock.split("[[package]]").skip(1) {
        let (mut package, mut named) = (Package::default(), "");
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name = ") {
                named = name.trim_matches('"');
            }
            if let Some(dependency) = line.strip_prefix(" \"") {
                package
                    .dependencies
                    .push(dependency.trim_end_matches("\","));
            } else if line.contains(" = \"") {
                package.lines.push(line);
            }
        }
        packages.entry(named).or_default().push(package);
    }
    let mut text = String::new();
    let mut left = vec![name];
    // Where a name has several versions all of them count: too much is as good.
    while let Some(name) = left.pop() {
        let name = name.split(' ').next().unwrap_or(name);
        for package in packages.remove(name).unwrap_or_default() {
            text.push_str(&package.lines.join(" "));
            text.push('\n');
            left.extend(package.dependencies);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::below;

    const LOCK: &str = r#"
version = 4

[[package]]
name = "core"
version = "0.1.0"
dependencies = [
 "half",
 "small 2.0.0",
]

[[package]]
name = "half"
version = "2.7.1"
source = "registry"
checksum = "1234"
dependencies = [
 "core",
]

[[package]]
name = "other"
version = "1.0.0"

[[package]]
name = "small"
version = "1.0.0"

[[package]]
name = "small"
version = "2.0.0"
"#;

    #[test]
    fn what_a_package_rests_on_is_told_and_nothing_else() {
        let told = below(LOCK, "core");
        let names = ["core", "half", "small", "small"];
        assert_eq!(told.lines().count(), names.len(), "{told}");
        for name in names {
            assert!(told.contains(&format!("name = \"{name}\"")), "{told}");
        }
        assert_ne!(below(&LOCK.replace("2.7.1", "2.7.2"), "core"), told);
        assert_ne!(below(&LOCK.replace("1234", "1235"), "core"), told);
        assert_eq!(below(&LOCK.replace("other", "another"), "core"), told);
        assert_eq!(below(LOCK, "absent"), "");
    }
}
