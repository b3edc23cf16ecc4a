use std::fmt::Write;

use model::Sha256;

/// Folder of the catalog in a written image, without a leading slash.
pub const ROOT: &str = "configs";

/// Length at which a name is cut. With the hash it then has 232 bytes, and file systems allow 255.
const NAME_MAX: usize = 160;

/// Returns the folder of a package below [`ROOT`]. The empty name is the global group.
pub(crate) fn name(package: &str) -> String {
    let mut name = String::with_capacity(package.len());
    for (at, byte) in package.bytes().enumerate() {
        let whole = name.len();
        if is_plain(byte, at == 0) {
            name.push(byte.into());
        } else {
            write!(name, "%{byte:02X}").expect("a String takes all");
        }
        if name.len() > NAME_MAX {
            // The hash of the whole name, so that two long names stay different.
            return format!(
                "{}%sha256-{}",
                &name[..whole],
                Sha256::of(package.as_bytes())
            );
        }
    }
    if name.is_empty() {
        // No package gets this folder, because two digits follow each `%` of an escape sequence.
        name.push('%');
    }
    name
}

fn is_plain(byte: u8, first: bool) -> bool {
    byte.is_ascii_alphanumeric() || (!first && b"._-+~@".contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn name_keeps_usual_characters_and_escapes_others() {
        for usual in ["3scale-operator", "A", "a.b", "nfd", "v1~x+y@z"] {
            assert_eq!(name(usual), usual);
        }
        for (package, folder) in [
            ("", "%"),
            (".", "%2E"),
            ("..", "%2E."),
            (".wh.a", "%2Ewh.a"),
            (".indexignore", "%2Eindexignore"),
            ("-rf", "%2Drf"),
            ("a/b", "a%2Fb"),
            ("../../etc", "%2E.%2F..%2Fetc"),
            ("%2E", "%252E"),
            ("a\\b\0c\nd e", "a%5Cb%00c%0Ad%20e"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(name(package), folder);
        }
    }

    #[test]
    fn name_of_long_package_is_cut_and_stays_unique() {
        assert_eq!(name(&"a".repeat(NAME_MAX)), "a".repeat(NAME_MAX));
        let (one, other) = (
            format!("{}b", "a".repeat(300)),
            format!("{}c", "a".repeat(300)),
        );
        assert_ne!(name(&one), name(&other));
        assert!(name(&one).starts_with(&"a".repeat(NAME_MAX)));
        assert_eq!(name(&one).len(), 232);
        assert!(
            name(&"/".repeat(54)).contains("%2F%sha256-"),
            "no escape sequence is cut in two"
        );
    }

    proptest! {
        #[test]
        fn name_is_one_safe_unique_component(packages in prop::collection::hash_set("[\\PC./%]{0,200}", 1..20)) {
            let mut folders = HashMap::new();
            for package in packages {
                let folder = name(&package);
                prop_assert!(!folder.is_empty() && folder.len() <= 255);
                prop_assert!(folder.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
                prop_assert!(!folder.starts_with('.'));
                let before = folders.insert(folder, package.clone());
                prop_assert_eq!(before, None);
            }
        }
    }
}
