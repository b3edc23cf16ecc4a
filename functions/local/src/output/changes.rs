use comfy_table::Table;
use operators::{
    BundleChange, BundleSummary, Changes, ChannelChange, ChannelSummary, DeprecationChange, DeprecationSummary,
    PackageChange, PackageSummary, TextChange,
};

use super::{print_json, print_table, print_text, short};

/// The document itself.
pub(crate) fn json(changes: &Changes) -> anyhow::Result<()> {
    print_json(changes)
}

/// One line for each thing that came (+), went (-) or changed (~).
pub(crate) fn table(changes: &Changes) -> anyhow::Result<()> {
    let mut rows = Rows(super::table(["", "PACKAGE", "WHAT", "NAME", "FROM", "TO"]));
    let packages = &changes.packages;
    if let Some(global) = &changes.global {
        rows.change(global);
    }
    packages.added.iter().for_each(|package| rows.summary('+', package));
    packages.removed.iter().for_each(|package| rows.summary('-', package));
    packages.changed.iter().for_each(|package| rows.change(package));
    let counts = [packages.added.len(), packages.removed.len(), packages.changed.len()];
    if !changes.is_empty() {
        print_table(&rows.0)?;
    }
    print_text(&format!(
        "{} -> {}: {} packages added, {} removed, {} changed\n",
        short(&changes.from),
        short(&changes.to),
        counts[0],
        counts[1],
        counts[2]
    ))
}

struct Rows(Table);

impl Rows {
    fn row(&mut self, sign: char, package: &str, what: &str, name: &str, from_to: [&str; 2]) {
        let [from, to] = from_to;
        self.0.add_row([&sign.to_string(), package, what, name, from, to]);
    }

    fn text(&mut self, package: &str, what: &str, name: &str, change: Option<&TextChange>) {
        if let Some(change) = change {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            self.row('~', package, what, name, [&text(&change.from), &text(&change.to)]);
        }
    }

    /// Of what is new, the right column tells; of what is gone, the left one.
    fn only(&mut self, sign: char, package: &str, what: &str, name: &str, is: &str) {
        let from_to = if sign == '+' { ["", is] } else { [is, ""] };
        self.row(sign, package, what, name, from_to);
    }

    fn summary(&mut self, sign: char, package: &PackageSummary) {
        let channel = package.default_channel.as_deref().unwrap_or_default();
        self.only(sign, &package.name, "package", "", channel);
        package
            .channels
            .iter()
            .for_each(|channel| self.channel(sign, &package.name, channel));
        package
            .bundles
            .iter()
            .for_each(|bundle| self.bundle(sign, &package.name, bundle));
        let deprecations = package.deprecations.iter();
        deprecations.for_each(|deprecation| self.deprecation(sign, &package.name, deprecation));
    }

    fn channel(&mut self, sign: char, package: &str, channel: &ChannelSummary) {
        self.only(sign, package, "channel", &channel.name, &channel.heads.join(" "));
    }

    fn bundle(&mut self, sign: char, package: &str, bundle: &BundleSummary) {
        let version = bundle.version.as_deref().unwrap_or_default();
        self.only(sign, package, "bundle", &bundle.name, version);
    }

    fn deprecation(&mut self, sign: char, package: &str, deprecation: &DeprecationSummary) {
        let name = deprecated(&deprecation.schema, &deprecation.name);
        self.only(sign, package, "deprecation", &name, &one_line(&deprecation.message));
    }

    fn change(&mut self, package: &PackageChange) {
        let name = package.name.as_str();
        if package.reordered {
            self.row('~', name, "order", "", ["", ""]);
        }
        if package.package {
            let none = TextChange { from: None, to: None };
            let default_channel = package.default_channel.as_ref().unwrap_or(&none);
            self.text(name, "package", "", Some(default_channel));
        }
        let channels = &package.channels;
        channels
            .added
            .iter()
            .for_each(|channel| self.channel('+', name, channel));
        channels
            .removed
            .iter()
            .for_each(|channel| self.channel('-', name, channel));
        channels
            .changed
            .iter()
            .for_each(|channel| self.changed_channel(name, channel));
        let bundles = &package.bundles;
        bundles.added.iter().for_each(|bundle| self.bundle('+', name, bundle));
        bundles.removed.iter().for_each(|bundle| self.bundle('-', name, bundle));
        bundles
            .changed
            .iter()
            .for_each(|bundle| self.changed_bundle(name, bundle));
        self.deprecations(package);
        for other in &package.others {
            let counts = [format!("-{}", other.removed), format!("+{}", other.added)];
            self.row('~', name, "other", &other.schema, [&counts[0], &counts[1]]);
        }
    }

    fn changed_channel(&mut self, package: &str, channel: &ChannelChange) {
        match &channel.heads {
            Some(heads) => {
                let heads = [heads.from.join(" "), heads.to.join(" ")];
                self.row('~', package, "channel", &channel.name, [&heads[0], &heads[1]]);
            }
            None => self.row('~', package, "channel", &channel.name, ["", ""]),
        }
    }

    fn changed_bundle(&mut self, package: &str, bundle: &BundleChange) {
        let none = TextChange { from: None, to: None };
        let version = bundle.version.as_ref().unwrap_or(&none);
        self.text(package, "bundle", &bundle.name, Some(version));
        self.text(package, "bundle image", &bundle.name, bundle.image.as_ref());
        for image in &bundle.images_added {
            self.only('+', package, "image", &bundle.name, image);
        }
        for image in &bundle.images_removed {
            self.only('-', package, "image", &bundle.name, image);
        }
    }

    fn deprecations(&mut self, package: &PackageChange) {
        let (name, deprecations) = (&package.name, &package.deprecations);
        let added = deprecations.added.iter();
        added.for_each(|deprecation| self.deprecation('+', name, deprecation));
        let removed = deprecations.removed.iter();
        removed.for_each(|deprecation| self.deprecation('-', name, deprecation));
        let changed = deprecations.changed.iter();
        changed.for_each(|deprecation| self.changed_deprecation(name, deprecation));
    }

    fn changed_deprecation(&mut self, package: &str, change: &DeprecationChange) {
        let text = |text: &Option<String>| one_line(text.as_deref().unwrap_or_default());
        let from_to = [text(&change.message.from), text(&change.message.to)];
        let name = deprecated(&change.schema, &change.name);
        self.row('~', package, "deprecation", &name, [&from_to[0], &from_to[1]]);
    }
}

/// `olm.bundle` and a name; the package itself has none.
fn deprecated(schema: &str, name: &str) -> String {
    let kind = schema.trim_start_matches("olm.");
    format!("{kind} {name}").trim_end().to_owned()
}

/// Messages may have several lines; a table has not.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
