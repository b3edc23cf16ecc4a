use olm::{BundleSummary, Changes, ChannelSummary, DeprecationSummary, PackageChange, PackageSummary, TextChange};

use super::{Table, print_table, print_text, short};

/// Prints one line for each thing that was added (+), removed (-) or changed (~).
pub(crate) fn table(changes: &Changes) -> anyhow::Result<()> {
    let mut rows = ChangeRows::default();
    let packages = &changes.packages;
    changes.global.iter().for_each(|global| rows.change(global));
    packages.added.iter().for_each(|package| rows.summary('+', package));
    packages.removed.iter().for_each(|package| rows.summary('-', package));
    packages.changed.iter().for_each(|package| rows.change(package));
    if !changes.is_empty() {
        print_table(&rows.0)?;
    }
    print_text(&format!(
        "{} -> {}: {} packages added, {} removed, {} changed\n",
        short(&changes.from),
        short(&changes.to),
        packages.added.len(),
        packages.removed.len(),
        packages.changed.len()
    ))
}

struct ChangeRow([String; 6]);

impl Table for ChangeRow {
    const HEADERS: &'static [&'static str] = &["", "PACKAGE", "WHAT", "NAME", "FROM", "TO"];

    fn row(&self) -> Vec<String> {
        self.0.to_vec()
    }
}

#[derive(Default)]
struct ChangeRows(Vec<ChangeRow>);

impl ChangeRows {
    /// Adds a row with the cells after the package.
    fn add(&mut self, sign: char, package: &str, cells: [&str; 4]) {
        let [what, name, from, to] = cells.map(str::to_owned);
        let row = [sign.to_string(), package.to_owned(), what, name, from, to];
        self.0.push(ChangeRow(row));
    }

    /// Adds a row with one value: in the right column for what is new, in the left one for what is gone.
    fn one_sided(&mut self, sign: char, package: &str, cells: [&str; 3]) {
        let [what, name, value] = cells;
        let (from, to) = if sign == '+' { ("", value) } else { (value, "") };
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

    /// Adds what is new and what is gone, each with its sign.
    fn parts<T>(&mut self, package: &str, added: &[T], removed: &[T], add: fn(&mut Self, char, &str, &T)) {
        added.iter().for_each(|part| add(self, '+', package, part));
        removed.iter().for_each(|part| add(self, '-', package, part));
    }

    fn channel(&mut self, sign: char, package: &str, channel: &ChannelSummary) {
        self.one_sided(sign, package, ["channel", &channel.name, &channel.heads.join(" ")]);
    }

    fn bundle(&mut self, sign: char, package: &str, bundle: &BundleSummary) {
        let version = bundle.version.as_deref().unwrap_or_default();
        self.one_sided(sign, package, ["bundle", &bundle.name, version]);
    }

    fn deprecation(&mut self, sign: char, package: &str, deprecation: &DeprecationSummary) {
        let name = deprecated(&deprecation.schema, &deprecation.name);
        self.one_sided(sign, package, ["deprecation", &name, &one_line(&deprecation.message)]);
    }

    fn summary(&mut self, sign: char, package: &PackageSummary) {
        let (name, default_channel) = (&package.name, package.default_channel.as_deref());
        self.one_sided(sign, name, ["package", "", default_channel.unwrap_or_default()]);
        let (channels, bundles) = (&package.channels, &package.bundles);
        channels.iter().for_each(|channel| self.channel(sign, name, channel));
        bundles.iter().for_each(|bundle| self.bundle(sign, name, bundle));
        for deprecation in &package.deprecations {
            self.deprecation(sign, name, deprecation);
        }
    }

    fn change(&mut self, package: &PackageChange) {
        let name = package.name.as_str();
        let (channels, bundles, deprecations) = (&package.channels, &package.bundles, &package.deprecations);
        if package.reordered {
            self.add('~', name, ["order", "", "", ""]);
        }
        if package.package {
            self.text(name, ["package", ""], package.default_channel.as_ref());
        }
        self.parts(name, &channels.added, &channels.removed, Self::channel);
        for channel in &channels.changed {
            let heads = channel.heads.as_ref();
            let heads = heads.map(|heads| [heads.from.join(" "), heads.to.join(" ")]);
            let [from, to] = heads.unwrap_or_default();
            self.add('~', name, ["channel", &channel.name, &from, &to]);
        }
        self.parts(name, &bundles.added, &bundles.removed, Self::bundle);
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
        self.parts(name, &deprecations.added, &deprecations.removed, Self::deprecation);
        for change in &deprecations.changed {
            let target = deprecated(&change.schema, &change.name);
            self.text(name, ["deprecation", &target], Some(&change.message));
        }
        for other in &package.others {
            let (removed, added) = (format!("-{}", other.removed), format!("+{}", other.added));
            self.add('~', name, ["other", &other.schema, &removed, &added]);
        }
    }
}

/// Returns the kind and the name of a deprecated thing. A package has no name here.
fn deprecated(schema: &str, name: &str) -> String {
    let kind = schema.trim_start_matches("olm.");
    format!("{kind} {name}").trim_end().to_owned()
}

/// Returns a message of several lines on one.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
