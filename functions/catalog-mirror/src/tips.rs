//! Tips for people who know other programs, and the place where they find more.

use config::Guidance;

/// Guidance of the command line.
pub(crate) const GUIDANCE: Guidance = Guidance {
    manual: Some("https://catalog-mirror.github.io/catalog-mirror/"),
    tips: &[
        ("status", LS),
        ("show", LS),
        ("get", LS),
        ("info", LS),
        ("describe", LS),
        ("packages", LS),
        ("catalogs", LS),
        ("check", "`validate` checks a catalog, and `verify` a store"),
        ("fsck", "`verify` checks a store"),
        ("add", POLL),
        ("pull", POLL),
        ("update", POLL),
        ("fetch", POLL),
        ("refresh", POLL),
        ("mirror", CARRY),
        ("copy", CARRY),
        ("push", CARRY),
        ("delete", "`rm` removes catalogs from a store"),
        ("backup", EXPORT),
        ("restore", EXPORT),
        ("version", "`--version` tells the version"),
        ("start", SERVE),
        ("run", SERVE),
        ("server", SERVE),
        ("prune", GC),
        ("clean", GC),
        ("undo", ROLLBACK),
        ("revert", ROLLBACK),
    ],
};

const LS: &str = "`ls` lists the catalogs with their last polls, and `ls NAME` the packages of one";
const POLL: &str = "`poll` publishes what has changed, and `sync` copies another mirror";
const CARRY: &str =
    "`carry` brings catalogs and images to a registry, and `sync` copies another mirror";
const SERVE: &str = "`serve` polls catalogs and serves them";
const EXPORT: &str = "`export` writes an archive of a store, and `import` publishes it elsewhere";
const GC: &str = "`gc` removes objects that nothing needs";
const ROLLBACK: &str = "`rollback` publishes an earlier state again";
