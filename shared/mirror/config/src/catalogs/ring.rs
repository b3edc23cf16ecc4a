//! `ring:` of a catalog: another catalog that it follows with a delay.

use std::collections::BTreeMap;

use model::CatalogName;
use publish::{CatalogSource, RingRule, RingSource};

use super::placed::PlacedCatalog;
use super::poll_interval;
use super::section::Section;
use crate::problems::Problems;

/// Fields of a catalog that a ring does not have, because they judge what is pulled.
const JUDGING: [&str; 5] = ["hold", "holdFor", "holdInstalled", "signature", "validate"];

/// Reads the fields of `ring`, if the catalog has it and they have no problem.
pub(crate) fn read(ring: &mut Section) -> Option<RingSource> {
    let of: Option<CatalogName> = ring.require("of").parsed("of", str::parse);
    let has_after = ring.has("after");
    let after = ring.parsed("after", poll_interval);
    let is_manual = ring.field("manual").unwrap_or(false);
    if !has_after && !is_manual {
        ring.problem(
            "a ring has a delay: write after: 7d, or manual: true for one that moves by hand only",
        );
    }
    let now = read_now(ring);
    if has_after && after.is_none() {
        return None;
    }
    Some(RingSource {
        of: of?,
        rule: RingRule { after, is_manual },
        now: now?,
    })
}

/// Reads the names of the packages that are taken at once.
fn read_now(ring: &mut Section) -> Option<Vec<String>> {
    if !ring.has("now") {
        return Some(Vec::new());
    }
    let place = ring.place_of("now");
    let names: Vec<String> = ring.field("now")?;
    if names.is_empty() {
        ring.problems
            .add(place, "names no package: name one or remove the field");
        return None;
    }
    for (at, name) in names.iter().enumerate() {
        let is_twice = names[..at].contains(name);
        if name.is_empty() || is_twice {
            let problem = format!("{name:?} is no package, or is named twice");
            ring.problems.add(place, problem);
            return None;
        }
    }
    Some(names)
}

/// Refuses the fields of a catalog that do not fit a ring.
pub(crate) fn refuse_fields(catalog: &Section, of: &CatalogName) {
    for name in JUDGING.iter().filter(|name| catalog.has(name)) {
        let problem = format!(
            "a ring publishes what {of} has published: set {name} of the catalog {of}, which is pulled and judged"
        );
        catalog.problems.add(catalog.place_of(name), problem);
    }
}

/// Refuses rings that follow themselves, a ring or a composition.
pub(crate) fn check(catalogs: &[PlacedCatalog], problems: &Problems) {
    let sources: BTreeMap<&CatalogName, &CatalogSource> = catalogs
        .iter()
        .map(|placed| (&placed.catalog.name, &placed.catalog.source))
        .collect();
    for PlacedCatalog { place, catalog, .. } in catalogs {
        let Some(RingSource { of, .. }) = catalog.source.ring() else {
            continue;
        };
        let problem = match sources.get(of) {
            _ if *of == catalog.name => "a ring cannot follow itself".to_owned(),
            Some(CatalogSource::Ring(other)) => format!(
                "{of} is a ring itself: follow {}, with a longer delay",
                other.of
            ),
            Some(CatalogSource::Composed(_)) => format!(
                "{of} is a composition: a ring follows a catalog that is pulled, and a composition may be made of rings"
            ),
            // One that is not configured may be a copy in the store. If there is none, the poll
            // says so.
            Some(CatalogSource::Pulled(_)) | None => continue,
        };
        problems.add(format!("{place}, ring, of"), problem);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{check_problems, load};

    const WRONG: &str = "
{name: p, ring: {of: a, after: 0}} => catalog p, ring, after: 0 is out of range: it must be from 1s to 365d
{name: p, ring: {of: a, after: 0s}} => catalog p, ring, after: 0s is out of range
{name: p, ring: {of: a, after: 1y}} => catalog p, ring, after: 1y is out of range
{name: p, ring: {of: a, after: 366d}} => catalog p, ring, after: 366d is out of range
{name: p, ring: {of: a, after: soon}} => catalog p, ring, after: \"soon\" is not a duration
{name: p, ring: {of: a, after: }} => catalog p, ring, after: has no value
{name: p, ring: {of: a}} => catalog p, ring: a ring has a delay
{name: p, ring: {of: a, manual: false}} => catalog p, ring: a ring has a delay
{name: p, ring: {of: a, manual: often}} => catalog p, ring, manual:
{name: p, ring: {after: 7d}} => catalog p, ring: the field of is missing
{name: p, ring: {of: A_B, after: 7d}} => catalog p, ring, of:
{name: p, ring: {of: a, after: 7d, now: []}} => catalog p, ring, now: names no package
{name: p, ring: {of: a, after: 7d, now: ['']}} => catalog p, ring, now: \"\" is no package
{name: p, ring: {of: a, after: 7d, now: [etcd, etcd]}} => catalog p, ring, now: \"etcd\" is no package, or is named twice
{name: p, ring: {of: a, after: 7d, now: etcd}} => catalog p, ring, now:
{name: p, ring: {of: a, after: 7d, delay: 3d}} => catalog p, ring: unknown field delay
{name: p, ring: a} => catalog p, ring: \"a\" is not a mapping
{name: p, ring: } => catalog p, ring: has no value
{ring: {of: a, after: 7d}} => catalog number 2: the field name is missing
{name: p, ring: {of: p, after: 7d}} => catalog p, ring, of: a ring cannot follow itself
{name: p, ring: {of: q, after: 7d}}, {name: q, ring: {of: a, after: 7d}} => catalog p, ring, of: q is a ring itself: follow a
{name: p, ring: {of: q, after: 7d}}, {name: q, ring: {of: p, after: 7d}} => catalog q, ring, of: p is a ring itself
{name: p, ring: {of: c, after: 7d}}, {name: c, compose: {inputs: [{catalog: a}]}} => catalog p, ring, of: c is a composition
{name: p, ring: {of: a, after: 7d}, source: 'quay.io/a/b:v1'} => catalog p: a catalog has one of source, compose and ring
{name: p, ring: {of: a, after: 7d}, compose: {inputs: [{catalog: a}]}} => catalog p: a catalog has one of source, compose and ring
{name: p, ring: {of: a, after: 7d}, hold: all} => catalog p, hold: a ring publishes what a has published
{name: p, ring: {of: a, after: 7d}, holdFor: 3d} => catalog p, holdFor: a ring publishes
{name: p, ring: {of: a, after: 7d}, validate: refuse} => catalog p, validate: a ring publishes
{name: p, ring: {of: a, after: 7d}, signature: insecureAcceptAnything} => catalog p, signature: a ring publishes
";

    #[test]
    fn problems_of_rings_name_catalog_and_field() {
        check_problems(WRONG, |entry| {
            format!("catalogs: [{{name: a, source: 'quay.io/a/b:v1'}}, {entry}]")
        });
    }

    #[test]
    fn ring_is_read_with_its_settings() {
        let text = "hold: all
signature: insecureAcceptAnything
catalogs:
- {name: redhat, source: 'quay.io/a/b:v1', signature: insecureAcceptAnything}
- {name: prod, ring: {of: redhat, after: 365d, now: [etcd, quay], manual: true}}
- {name: test, ring: {of: elsewhere, after: 36h}, interval: 1h, availabilityMode: Unavailable}
- {name: hand, ring: {of: redhat, manual: true}}
- {name: team, compose: {inputs: [{catalog: prod}]}}
";
        let config = load(text).unwrap();
        let ring = |name: &str| {
            let found = config
                .catalogs
                .iter()
                .find(|catalog| catalog.name.as_str() == name);
            found.unwrap().source.ring().unwrap()
        };
        let prod = ring("prod");
        assert_eq!(prod.of.as_str(), "redhat");
        assert_eq!(prod.rule.after, Some(Duration::from_secs(365 * 24 * 3600)));
        assert!(prod.rule.is_manual);
        assert_eq!(prod.now, ["etcd", "quay"]);
        let texts = ["prod", "test", "hand"].map(|name| ring(name).to_string());
        assert_eq!(
            texts,
            [
                "ring:redhat+365d+manual+now:etcd,quay",
                "ring:elsewhere+36h",
                "ring:redhat+manual"
            ]
        );
    }
}
