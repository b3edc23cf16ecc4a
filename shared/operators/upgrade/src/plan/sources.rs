//! The choice among several catalogs that have a package.

use olm::comparable_version;

use crate::plan::known::{KnownPackage, KnownPackages};
use crate::plan::{InstalledOperator, PlanCatalog};

/// Package of the catalog from which an operator comes, or will come.
#[derive(Default)]
pub(super) struct ChosenPackage<'k, 'a> {
    /// Package; `None` if the catalog of the operator does not have it.
    pub(super) package: Option<&'k KnownPackage<'a>>,
    /// Names of all catalogs among which nothing decides, or of those that have the package if the
    /// one of the operator does not.
    pub(super) others: Vec<&'a str>,
}

impl PlanCatalog {
    /// Returns true if clusters use the catalog by a CatalogSource or ClusterCatalog of this name.
    fn is_named(&self, source: &str) -> bool {
        self.name == source || self.cluster_names.contains(source)
    }

    /// Returns true if such a name differs only in its version, as at an upgrade of the cluster.
    fn is_version_of(&self, source: &str) -> bool {
        let series = series(source);
        let names = self.cluster_names.iter().chain([&self.name]);
        names
            .map(|name| self::series(name))
            .any(|one| one == series)
    }
}

/// Chooses the package of an operator. The catalog of its source counts, then the one whose name has
/// another version, then the one that goes on from the present catalog, then the one that has the
/// installed bundle, and the first one at last.
pub(super) fn choose<'k, 'a>(
    packages: &'k KnownPackages<'a>,
    catalogs: &'a [PlanCatalog],
    operator: &InstalledOperator,
    present: Option<&KnownPackage<'a>>,
) -> ChosenPackage<'k, 'a> {
    let found = packages.get(&*operator.package);
    let mut found: Vec<&KnownPackage<'a>> = found.into_iter().flatten().collect();
    if let Some(source) = operator.source.as_deref()
        && catalogs.iter().any(|catalog| catalog.is_named(source))
    {
        let others = names(&found);
        found.retain(|known| known.catalog.is_named(source));
        if found.is_empty() {
            return ChosenPackage {
                package: None,
                others,
            };
        }
    }
    if let Some(source) = operator.source.as_deref() {
        narrow(&mut found, |known| known.catalog.is_version_of(source));
    }
    if let Some(present) = present {
        narrow(&mut found, |known| {
            known.catalog.is_version_of(&present.catalog.name)
        });
    }
    narrow(&mut found, |known| known.has(operator));
    let others = if found.len() > 1 {
        names(&found)
    } else {
        Vec::new()
    };
    ChosenPackage {
        package: found.first().copied(),
        others,
    }
}

fn names<'a>(found: &[&KnownPackage<'a>]) -> Vec<&'a str> {
    let names = found.iter().map(|known| known.catalog.name.as_str());
    names.collect()
}

/// Keeps the packages for which a condition holds, or all if it holds for none.
fn narrow(found: &mut Vec<&KnownPackage<'_>>, holds: impl Fn(&KnownPackage<'_>) -> bool) {
    if found.len() > 1 && found.iter().any(|known| holds(known)) {
        found.retain(|known| holds(known));
    }
}

/// Returns the name of a catalog without the version at its end, such as `redhat` for `redhat-4-20`.
fn series(name: &str) -> &str {
    let mut series = name.strip_suffix("-latest").unwrap_or(name);
    while let Some((rest, last)) = series.rsplit_once(['-', '_', '.', ':']) {
        let number = last.strip_prefix('v').unwrap_or(last);
        if rest.is_empty() || number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
            break;
        }
        series = rest;
    }
    series
}

/// Returns a remark about the version to which a ClusterExtension is bound, if it is bound to one
/// or does not allow a step.
pub(super) fn pin_remark<'s>(
    operator: &InstalledOperator,
    mut steps: impl Iterator<Item = &'s str>,
) -> Option<String> {
    let pin = operator.pin.as_deref()?;
    let is_exact = comparable_version(pin).is_some();
    let range = olm::VersionRange::parse(pin);
    let forbidden = steps.find(|version| match (comparable_version(version), &range) {
        (Some(version), Some(range)) => !range.contains(&version),
        _ => true,
    });
    match forbidden {
        Some(version) => Some(format!(
            "its ClusterExtension asks for version {pin:?}: let spec.source.catalog.version allow {version}"
        )),
        None if is_exact => Some(format!("its ClusterExtension pins version {pin}")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::series;

    #[test]
    fn series_is_name_without_version() {
        for (name, expected) in [
            ("redhat-4-20", "redhat"),
            ("cs-redhat-operator-index-v4-20", "cs-redhat-operator-index"),
            ("quay.io/a/b:v4.20", "quay.io/a/b"),
            ("cs-team-latest", "cs-team"),
            ("team", "team"),
            ("v4-20", "v4"),
            ("-1", "-1"),
        ] {
            assert_eq!(series(name), expected, "{name}");
        }
    }
}
