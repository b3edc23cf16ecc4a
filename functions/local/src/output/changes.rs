use olm::{
    BundleChange, BundleSummary, Changes, ChannelChange, ChannelSummary, DeprecationChange, DeprecationSummary,
    PackageChange, PackageSummary, TextChange,
};

use super::{TextTable, print_json, print_text, short};

/// Prints the document of `GET /catalogs/{c}/changes`.
pub(crate) fn json(changes: &Changes) -> anyhow::Result<()> {
    print_json(changes)
}

/// Prints one line for each thing that was added (+), removed (-) or changed (~).
pub(crate) fn table(changes: &Changes) -> anyhow::Result<()> {
    let mut rows = ChangeTable(TextTable::new(["", "PACKAGE", "WHAT", "NAME", "FROM", "TO"]));
    let packages = &changes.packages;
    if let Some(global) = &changes.global {
        rows.change(global);
    }
    packages.added.iter().for_each(|package| rows.summary('+', package));
    packages.removed.iter().for_each(|package| rows.summary('-', package));
    packages.changed.iter().for_each(|package| rows.change(package));
    if !changes.is_empty() {
        rows.0.print()?;
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

struct ChangeTable(TextTable);

impl ChangeTable {
    fn row(&mut self, sign: char, package: &str, what: &str, name: &str, from_to: [&str; 2]) {
        let [from, to] = from_to;
        self.0.row([&sign.to_string(), package, what, name, from, to]);
    }

    fn text(&mut self, package: &str, what: &str, name: &str, change: Option<&TextChange>) {
        if let Some(change) = change {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            self.row('~', package, what, name, [&text(&change.from), &text(&change.to)]);
        }
    }

    /// Adds a row with one value: in the right column for what is new, in the left one for what is gone.
    fn one_sided(&mut self, sign: char, package: &str, what: &str, name: &str, value: &str) {
        let from_to = if sign == '+' { ["", value] } else { [value, ""] };
        self.row(sign, package, what, name, from_to);
    }

    fn summary(&mut self, sign: char, package: &PackageSummary) {
        let default_channel = package.default_channel.as_deref().unwrap_or_default();
        self.one_sided(sign, &package.name, "package", "", default_channel);
        for channel in &package.channels {
            self.channel(sign, &package.name, channel);
        }
        for bundle in &package.bundles {
            self.bundle(sign, &package.name, bundle);
        }
        for deprecation in &package.deprecations {
            self.deprecation(sign, &package.name, deprecation);
        }
    }

    fn channel(&mut self, sign: char, package: &str, channel: &ChannelSummary) {
        self.one_sided(sign, package, "channel", &channel.name, &channel.heads.join(" "));
    }

    fn bundle(&mut self, sign: char, package: &str, bundle: &BundleSummary) {
        let version = bundle.version.as_deref().unwrap_or_default();
        self.one_sided(sign, package, "bundle", &bundle.name, version);
    }

    fn deprecation(&mut self, sign: char, package: &str, deprecation: &DeprecationSummary) {
        let name = deprecated(&deprecation.schema, &deprecation.name);
        self.one_sided(sign, package, "deprecation", &name, &one_line(&deprecation.message));
    }

    fn change(&mut self, package: &PackageChange) {
        let name = package.name.as_str();
        if package.reordered {
            self.row('~', name, "order", "", ["", ""]);
        }
        let none = TextChange { from: None, to: None };
        if package.package {
            let default_channel = package.default_channel.as_ref().unwrap_or(&none);
            self.text(name, "package", "", Some(default_channel));
        }
        for channel in &package.channels.added {
            self.channel('+', name, channel);
        }
        for channel in &package.channels.removed {
            self.channel('-', name, channel);
        }
        for channel in &package.channels.changed {
            self.changed_channel(name, channel);
        }
        for bundle in &package.bundles.added {
            self.bundle('+', name, bundle);
        }
        for bundle in &package.bundles.removed {
            self.bundle('-', name, bundle);
        }
        for bundle in &package.bundles.changed {
            self.changed_bundle(name, bundle);
        }
        self.deprecations(package);
        for other in &package.others {
            let counts = [format!("-{}", other.removed), format!("+{}", other.added)];
            self.row('~', name, "other", &other.schema, [&counts[0], &counts[1]]);
        }
    }

    fn changed_channel(&mut self, package: &str, channel: &ChannelChange) {
        let heads = channel.heads.as_ref();
        let [from, to] = heads.map_or_else(Default::default, |heads| [heads.from.join(" "), heads.to.join(" ")]);
        self.row('~', package, "channel", &channel.name, [&from, &to]);
    }

    fn changed_bundle(&mut self, package: &str, bundle: &BundleChange) {
        let none = TextChange { from: None, to: None };
        let version = bundle.version.as_ref().unwrap_or(&none);
        self.text(package, "bundle", &bundle.name, Some(version));
        self.text(package, "bundle image", &bundle.name, bundle.image.as_ref());
        for image in &bundle.images_added {
            self.one_sided('+', package, "image", &bundle.name, image);
        }
        for image in &bundle.images_removed {
            self.one_sided('-', package, "image", &bundle.name, image);
        }
    }

    fn deprecations(&mut self, package: &PackageChange) {
        let (name, deprecations) = (&package.name, &package.deprecations);
        for deprecation in &deprecations.added {
            self.deprecation('+', name, deprecation);
        }
        for deprecation in &deprecations.removed {
            self.deprecation('-', name, deprecation);
        }
        for change in &deprecations.changed {
            let text = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default());
            let from_to = [text(&change.message.from), text(&change.message.to)];
            self.changed_deprecation(name, change, [&from_to[0], &from_to[1]]);
        }
    }

    fn changed_deprecation(&mut self, package: &str, change: &DeprecationChange, messages: [&str; 2]) {
        let name = deprecated(&change.schema, &change.name);
        self.row('~', package, "deprecation", &name, messages);
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
