use compose::{
    Composition, CompositionInput, ConflictRule, DependencyRule, PackageSelection, Selection,
};
use model::{CatalogName, Sha256};

/// Returns the composition of a ring that takes some packages at once: these of the newest state
/// of the source, and everything else of the state at which the ring is.
///
/// Requirements are not looked at: each state was judged as it was published, and a package that is
/// taken whole need not be read then.
pub fn composition(of: &CatalogName, at: Sha256, packages: &[String]) -> Composition {
    let mut select = Selection::default();
    for package in packages {
        select.packages.push(PackageSelection {
            name: package.clone(),
            full: true,
            ..PackageSelection::default()
        });
    }
    let newest = CompositionInput {
        catalog: Some(of.to_string()),
        select: Some(select),
        ..CompositionInput::default()
    };
    let ring = CompositionInput {
        catalog: Some(format!("{of}@{at}")),
        ..CompositionInput::default()
    };
    Composition {
        inputs: vec![newest, ring],
        conflicts: ConflictRule::First,
        dependencies: DependencyRule::Ignore,
        ..Composition::default()
    }
}
