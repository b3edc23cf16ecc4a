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

struct ChangeRow {
    sign: char,
    package: String,
    what: &'static str,
    name: String,
    from: String,
    to: String,
}

impl Table for ChangeRow {
    const HEADERS: &'static [&'static str] = &["", "PACKAGE", "WHAT", "NAME", "FROM", "TO"];

    fn row(&self) -> Vec<String> {
        let texts = [&self.package, self.what, &self.name, &self.from, &self.to];
        let sign = self.sign.to_string();
        [sign].into_iter().chain(texts.map(str::to_owned)).collect()
    }
}

/// Part of a package that was added or removed.
struct ChangedPart {
    what: &'static str,
    name: String,
    value: String,
}

#[derive(Default)]
struct ChangeRows(Vec<ChangeRow>);

impl ChangeRows {
    /// Adds rows with one value: in the right column for what is new, in the left one for what is gone.
    fn parts(&mut self, sign: char, package: &str, parts: impl IntoIterator<Item = ChangedPart>) {
        let rows = parts.into_iter().map(|part| {
            let (from, to) = match sign {
                '+' => (String::new(), part.value),
                _ => (part.value, String::new()),
            };
            ChangeRow {
                sign,
                package: package.to_owned(),
                what: part.what,
                name: part.name,
                from,
                to,
            }
        });
        self.0.extend(rows);
    }

    fn changed(&mut self, package: &str, what: &'static str, name: impl Into<String>, from_to: [String; 2]) {
        let [from, to] = from_to;
        self.0.push(ChangeRow {
            sign: '~',
            package: package.to_owned(),
            what,
            name: name.into(),
            from,
            to,
        });
    }

    fn summary(&mut self, sign: char, package: &PackageSummary) {
        let whole = ChangedPart {
            what: "package",
            name: String::new(),
            value: package.default_channel.clone().unwrap_or_default(),
        };
        let channels = package.channels.iter().map(channel);
        let bundles = package.bundles.iter().map(bundle);
        let deprecations = package.deprecations.iter().map(deprecation);
        let parts = channels.chain(bundles).chain(deprecations);
        self.parts(sign, &package.name, [whole].into_iter().chain(parts));
    }

    fn change(&mut self, package: &PackageChange) {
        let name = package.name.as_str();
        let (channels, bundles, deprecations) = (&package.channels, &package.bundles, &package.deprecations);
        if package.reordered {
            self.changed(name, "order", "", Default::default());
        }
        if package.package {
            self.changed(name, "package", "", texts(package.default_channel.as_ref()));
        }
        self.parts('+', name, channels.added.iter().map(channel));
        self.parts('-', name, channels.removed.iter().map(channel));
        for channel in &channels.changed {
            let heads = channel.heads.as_ref();
            let heads = heads.map(|heads| [heads.from.join(" "), heads.to.join(" ")]);
            self.changed(name, "channel", &channel.name, heads.unwrap_or_default());
        }
        self.parts('+', name, bundles.added.iter().map(bundle));
        self.parts('-', name, bundles.removed.iter().map(bundle));
        for bundle in &bundles.changed {
            let image = |image: &String| ChangedPart {
                what: "image",
                name: bundle.name.clone(),
                value: image.clone(),
            };
            self.changed(name, "bundle", &bundle.name, texts(bundle.version.as_ref()));
            if bundle.image.is_some() {
                self.changed(name, "bundle image", &bundle.name, texts(bundle.image.as_ref()));
            }
            self.parts('+', name, bundle.images_added.iter().map(image));
            self.parts('-', name, bundle.images_removed.iter().map(image));
        }
        self.parts('+', name, deprecations.added.iter().map(deprecation));
        self.parts('-', name, deprecations.removed.iter().map(deprecation));
        for change in &deprecations.changed {
            let messages = texts(Some(&change.message)).map(|text| one_line(&text));
            self.changed(name, "deprecation", deprecated(&change.schema, &change.name), messages);
        }
        for other in &package.others {
            let counts = [format!("-{}", other.removed), format!("+{}", other.added)];
            self.changed(name, "other", &other.schema, counts);
        }
    }
}

fn channel(channel: &ChannelSummary) -> ChangedPart {
    ChangedPart {
        what: "channel",
        name: channel.name.clone(),
        value: channel.heads.join(" "),
    }
}

fn bundle(bundle: &BundleSummary) -> ChangedPart {
    ChangedPart {
        what: "bundle",
        name: bundle.name.clone(),
        value: bundle.version.clone().unwrap_or_default(),
    }
}

fn deprecation(deprecation: &DeprecationSummary) -> ChangedPart {
    ChangedPart {
        what: "deprecation",
        name: deprecated(&deprecation.schema, &deprecation.name),
        value: one_line(&deprecation.message),
    }
}

fn texts(change: Option<&TextChange>) -> [String; 2] {
    let sides = change.map(|change| [change.from.clone(), change.to.clone()]);
    sides.unwrap_or_default().map(Option::unwrap_or_default)
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
