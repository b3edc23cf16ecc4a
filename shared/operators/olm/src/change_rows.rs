//! Changes as rows of a table for people.

use crate::{
    BundleSummary, Changes, ChannelSummary, Deprecation, DeprecationTarget, PackageChange,
    PackageSummary, changes::TextChange,
};

impl Changes {
    /// Returns a row for each thing that was added (`+`), removed (`-`) or changed (`~`): this
    /// sign, the package, the kind of thing, its name, its former and its new value.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = ChangeRows::default();
        let packages = &self.packages;
        self.global.iter().for_each(|global| rows.change(global));
        packages
            .added
            .iter()
            .for_each(|package| rows.summary('+', package));
        packages
            .removed
            .iter()
            .for_each(|package| rows.summary('-', package));
        packages
            .changed
            .iter()
            .for_each(|package| rows.change(package));
        rows.0
    }
}

#[derive(Default)]
struct ChangeRows(Vec<Vec<String>>);

impl ChangeRows {
    /// Adds a row with the cells after the package.
    fn add(&mut self, sign: char, package: &str, cells: [&str; 4]) {
        let mut row = vec![sign.to_string(), package.to_owned()];
        row.extend(cells.map(str::to_owned));
        self.0.push(row);
    }

    /// Adds a row with one value: in the right column for what is new, in the left one for what is
    /// gone.
    fn one_sided(&mut self, sign: char, package: &str, cells: [&str; 3]) {
        let [what, name, value] = cells;
        let (from, to) = if sign == '+' {
            ("", value)
        } else {
            (value, "")
        };
        self.add(sign, package, [what, name, from, to]);
    }

    /// Adds a row with two values; without a change they are empty.
    fn text(&mut self, package: &str, cells: [&str; 2], change: Option<&TextChange>) {
        let [what, name] = cells;
        let from = change.and_then(|change| change.from.as_deref());
        let to = change.and_then(|change| change.to.as_deref());
        let [from, to] = [from, to].map(|text| one_line(text.unwrap_or_default()));
        self.add('~', package, [what, name, &from, &to]);
    }

    /// Adds parts of a package that are all new or all gone.
    fn parts(
        &mut self,
        sign: char,
        package: &str,
        channels: &[ChannelSummary],
        bundles: &[BundleSummary],
        deprecations: &[Deprecation<String>],
    ) {
        for channel in channels {
            self.one_sided(
                sign,
                package,
                ["channel", &channel.name, &channel.heads.join(" ")],
            );
        }
        for bundle in bundles {
            let version = bundle.version.as_deref().unwrap_or_default();
            self.one_sided(sign, package, ["bundle", &bundle.name, version]);
        }
        for deprecation in deprecations {
            let name = deprecated(&deprecation.target);
            self.one_sided(
                sign,
                package,
                ["deprecation", &name, &one_line(&deprecation.message)],
            );
        }
    }

    fn summary(&mut self, sign: char, package: &PackageSummary) {
        let default_channel = package.default_channel.as_deref().unwrap_or_default();
        self.one_sided(sign, &package.name, ["package", "", default_channel]);
        self.parts(
            sign,
            &package.name,
            &package.channels,
            &package.bundles,
            &package.deprecations,
        );
    }

    fn change(&mut self, package: &PackageChange) {
        let name = package.name.as_str();
        let (channels, bundles, deprecations) =
            (&package.channels, &package.bundles, &package.deprecations);
        if package.reordered {
            self.add('~', name, ["order", "", "", ""]);
        }
        if package.package {
            self.text(name, ["package", ""], package.default_channel.as_ref());
        }
        self.parts(
            '+',
            name,
            &channels.added,
            &bundles.added,
            &deprecations.added,
        );
        self.parts(
            '-',
            name,
            &channels.removed,
            &bundles.removed,
            &deprecations.removed,
        );
        for channel in &channels.changed {
            let heads = channel.heads.as_ref();
            let heads = heads.map(|heads| [heads.from.join(" "), heads.to.join(" ")]);
            let [from, to] = heads.unwrap_or_default();
            self.add('~', name, ["channel", &channel.name, &from, &to]);
        }
        for bundle in &bundles.changed {
            self.text(name, ["bundle", &bundle.name], bundle.version.as_ref());
            if bundle.image.is_some() {
                self.text(name, ["bundle image", &bundle.name], bundle.image.as_ref());
            }
            for (sign, images) in [('+', &bundle.images_added), ('-', &bundle.images_removed)] {
                for image in images {
                    self.one_sided(sign, name, ["image", &bundle.name, image]);
                }
            }
        }
        for change in &deprecations.changed {
            let target = deprecated(&change.target);
            self.text(name, ["deprecation", &target], Some(&change.message));
        }
        for other in &package.others {
            let removed = format!("-{}", other.removed);
            let added = format!("+{}", other.added);
            self.add('~', name, ["other", &other.schema, &removed, &added]);
        }
    }
}

/// Returns the kind and the name of a deprecated thing. A package has no name here.
fn deprecated(target: &DeprecationTarget) -> String {
    let kind = target.schema.trim_start_matches("olm.");
    format!("{kind} {}", target.name).trim_end().to_owned()
}

/// Returns a message of several lines on one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
