//! Packages for tests.

use std::collections::BTreeMap;

use olm::{Package, PackageParser};

/// Builds the lines of the package `p` from channels such as `stable: 1.0.0; 1.1.0 <1.0.0 -0.9.0 ~>=0.1.0_<1.1.0 @4.20`, one a line: the
/// version of each bundle, what it replaces and skips, its `skipRange` with `_` for spaces, and its maximum version of OpenShift. A
/// bundle is named `p.v` and its version, and the first channel is the default.
pub(crate) fn lines(channels: &str) -> String {
    let mut lines = Vec::new();
    let mut bundles: BTreeMap<&str, String> = BTreeMap::new();
    for channel in channels.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, entries) = channel.split_once(':').unwrap();
        if lines.is_empty() {
            lines.push(format!(
                r#"{{"defaultChannel":"{name}","name":"p","schema":"olm.package"}}"#
            ));
        }
        let entries = entries
            .split(';')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(|entry| {
                let mut words = entry.split(' ');
                let version = words.next().unwrap();
                let bundle = bundles.entry(version).or_default();
                let (mut fields, mut skips) = (format!(r#""name":"p.v{version}""#), Vec::new());
                for (kind, word) in words.map(|word| word.split_at(1)) {
                    match kind {
                        "<" => fields += &format!(r#","replaces":"p.v{word}""#),
                        "-" => skips.push(format!(r#""p.v{word}""#)),
                        "~" => fields += &format!(r#","skipRange":"{}""#, word.replace('_', " ")),
                        _ => *bundle = format!(r#",{{"type":"olm.maxOpenShiftVersion","value":"{word}"}}"#),
                    }
                }
                format!(r#"{{{fields},"skips":[{}]}}"#, skips.join(","))
            });
        let entries: Vec<String> = entries.collect();
        lines.push(format!(
            r#"{{"entries":[{}],"name":"{name}","package":"p","schema":"olm.channel"}}"#,
            entries.join(",")
        ));
    }
    lines.extend(bundles.iter().map(|(version, properties)| {
        let package = format!(r#"{{"type":"olm.package","value":{{"packageName":"p","version":"{version}"}}}}"#);
        format!(r#"{{"name":"p.v{version}","package":"p","properties":[{package}{properties}],"schema":"olm.bundle"}}"#)
    }));
    lines.join("\n") + "\n"
}

/// Parses lines from [`lines`].
pub(crate) fn package(channels: &str) -> Package {
    PackageParser::parse(lines(channels).as_bytes())
}
