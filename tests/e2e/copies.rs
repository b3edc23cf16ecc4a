//! Copies of a mirror: over HTTP, and by archive.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use crate::support::binary::{Ran, Server, path};
use crate::support::catalogs::{self, Files};
use crate::support::work::Work;

/// Returns all files of a store except those that each store writes for itself.
fn tree(work: &Work, store: &str) -> Files {
    let mut files = catalogs::files(&work.path(store));
    files.retain(|(path, _)| {
        !path.ends_with("status.json") && !path.ends_with("layers.json") && !path.starts_with('.')
    });
    files
}

fn serve(work: &Work, store: &str) -> Server {
    Server::of(work.command(&format!("serve --no-poll --store {store}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_makes_equal_copy_of_server_and_of_its_copy() {
    let work = Work::published();
    let first = serve(&work, "store");
    let sync = |from: &str, to: &str| {
        let reports = work
            .run(&format!("sync {from} {to} --json"))
            .exits(0)
            .json();
        reports[0]["moved"]["objects"].clone()
    };
    sync(&first.url, "copy");
    work.poll("v2").exits(0);
    let moved = sync(&first.url, "copy");
    assert_eq!(
        moved, 5,
        "the pointer, the snapshot, the days and two shards"
    );
    assert!(tree(&work, "copy") == tree(&work, "store"));
    sync(&serve(&work, "copy").url, "onward");
    let original = tree(&work, "store");
    assert!(
        tree(&work, "onward")
            .iter()
            .all(|file| original.contains(file))
    );
    work.run("verify --store onward").exits(0);
}

#[test]
fn import_makes_equal_copy() {
    let work = Work::published();
    let export = |options: &str| {
        let report = work.run(&format!("export --store store --json {options}"));
        report.exits(0).json()["objects"].clone()
    };
    let import = "import --store high --receipt receipt.json";
    assert_eq!(
        export("--to a.tar"),
        7,
        "four shards, the days, the snapshot and the pointer"
    );
    work.plays(&format!("0 {import} a.tar"));
    work.poll("v2").exits(0);
    let hash = work.json("store/catalogs/demo/current.json")["contentHash"].clone();
    let hash = hash.as_str().unwrap();
    let changes = export("--to a.tar --receipt receipt.json");
    assert_eq!(
        changes, 5,
        "two shards, the days, the snapshot and the pointer"
    );
    work.plays(&format!("0 {import} a.tar"));
    assert!(tree(&work, "high") == tree(&work, "store"));

    // The same archive again, and an older one, are named with what they hold.
    fs::create_dir(work.path("disk")).unwrap();
    work.plays(&format!(
        "0 verify --store high
         0 {import} a.tar
         ! the archive a.tar (demo
         ! at serial 2, exported at 20
         ! brings nothing new
         1 export --store store --to disk --since 0
         ! starts with \"0\"; see `history NAME`
         0 export --store store --to disk --since {}
         > export --since {hash}
         0 rollback --store store demo --previous
         0 export --store store --to b.tar
         0 {import} b.tar
         1 {import} a.tar
         ! the archive a.tar (demo",
        &hash[..8]
    ));
    let files: Vec<String> = tree(&work, "disk")
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let end = format!("-{}.001.tar", &hash[..12]);
    assert!(files.len() == 1 && files[0].ends_with(&end), "{files:?}");
}

/// The page's pattern matches an archive of any size, and its plain name is understood too.
#[test]
fn export_numbers_its_volumes_and_import_takes_pattern_or_name() {
    let work = Work::published();
    let program = path().display();
    work.plays(
        "0 export --store store --to one.tar
         > one.001.tar
         0 export --store store --to many.tar --volume-size 12KB
         > many.002.tar
         0 import --store copy one.tar
         > published
         0 import --store other many.tar
         > published
         1 import --store third none.tar
         ! none.tar",
    );
    for (line, store) in [("one.*.tar", "fourth"), ("many.*.tar", "fifth")] {
        let mut shell = Command::new("bash");
        let script = format!("{program} import --store {store} {line}");
        shell.args(["-c", &script]).current_dir(work.root());
        Ran::of(&mut shell).exits(0).prints("published");
        assert!(tree(&work, store) == tree(&work, "copy"), "{line}");
    }
    let gone = fs::remove_file(work.path("many.002.tar"));
    assert!(gone.is_ok());
    work.plays("1 import --store sixth many.tar\n! volume 2 was not given");
}

/// A mirror that begins anew has lower serials than its copies, which refuse it.
#[test]
fn mirror_restored_from_copy_goes_on_with_its_serial() {
    let work = Work::published();
    work.poll("v2").exits(0);
    work.run("sync store copy").exits(0);
    fs::remove_dir_all(work.path("store")).unwrap();
    work.run("sync copy store").exits(0);
    work.poll("v2").exits(0);
    assert_eq!(work.json("store/catalogs/demo/current.json")["serial"], 2);
    work.poll("v1").exits(0);
    work.run("sync store copy").exits(0);
    assert_eq!(work.json("copy/catalogs/demo/current.json")["serial"], 3);

    fs::remove_dir_all(work.path("store")).unwrap();
    work.poll("v2").exits(0);
    let refused = work.run("sync store copy").exits(1);
    refused.complains("the origin is at serial 1 and the store at 3");
    work.run("sync store copy --allow-rollback --allow-diverged")
        .exits(0);
}

/// A medium or a folder that others filled: opening a FIFO waits for a writer, and a device has no
/// end.
#[test]
fn no_command_waits_for_a_file_that_others_left() {
    let work = Work::published();
    let fifo = |name: &str| {
        let path = work.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::remove_file(&path).ok();
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
    };
    work.run("export --store store --static tree").exits(0);
    work.run("receipt --store store").exits(0);
    work.write("package.yaml", "inputs: [{catalog: demo}]");
    for name in [
        "disk/a.tar",
        "disk/receipt.json",
        "layout/index.json",
        "configs/catalog.yaml",
        "bundle/manifests/csv.yaml",
        "tree/static.json",
        "locked/.tmp/lock",
    ] {
        fifo(name);
    }
    symlink("/dev/zero", work.path("disk/zero.tar")).unwrap();
    symlink("a.tar", work.path("disk/link.tar")).unwrap();
    for line in [
        "import --store high disk/a.tar",
        "import --store high disk/link.tar",
        "import --store high disk/zero.tar",
        "export --store store --to b.tar --receipt disk/receipt.json",
        "export --store store --to b.tar --receipt disk/zero.tar",
        "render oci:layout",
        "compose --store store --image oci:layout:v1 package.yaml",
        "render dir:configs",
        "bundle show dir:bundle",
        "export --store store --static tree",
        "export --store store --static locked",
        "export --store store --to disk/a.tar",
    ] {
        let ran = Ran::within(Duration::from_secs(60), &work.command(line)).exits(1);
        assert!(ran.stderr.contains("not a "), "{line}: {ran:?}");
    }
    // A file of the own side that is left over is written anew, and no link is followed.
    work.write("own", "own");
    symlink("own", work.path("b.001.tar.partial")).unwrap();
    let export = work.command("export --store store --to b.tar");
    Ran::within(Duration::from_secs(60), &export).exits(0);
    assert_eq!(work.read("own"), "own");
}

/// A pipe that a shell opens for a command is the user's own.
#[test]
fn pipes_of_a_shell_are_read() {
    let work = Work::published();
    let program = path().display();
    work.run("export --store store --to a.tar").exits(0);
    work.write("installed", "demo-queue 1.0.0\n");
    for (script, said) in [
        ("P import --store one <(cat a.001.tar)", "published"),
        ("cat a.001.tar | P import --store two -", "published"),
        ("P import --store three /dev/stdin < a.001.tar", "published"),
        (
            "P export --store store --to b.tar --receipt <(P receipt --store one)",
            "b.001.tar",
        ),
        (
            "P plan <(cat installed) --store store --from demo --to demo",
            "demo-queue",
        ),
        (
            "P plan - --store store --from demo --to demo < installed",
            "demo-queue",
        ),
        (
            "mkfifo own; cat installed > own & P plan own --store store --from demo --to demo",
            "demo-queue",
        ),
        (
            "P compose --store store <(echo 'inputs: [{catalog: demo}]')",
            "demo-queue",
        ),
    ] {
        let script = script.replace("P ", &format!("{program} "));
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(work.root());
        Ran::within(Duration::from_secs(60), &shell).prints(said);
    }
}
