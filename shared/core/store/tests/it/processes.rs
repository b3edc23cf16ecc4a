//! Compare-and-swap between processes: this binary starts itself as writers that count, and kills
//! some of them.
#![expect(clippy::print_stdout, reason = "the parent process reads it")]

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use model::Key;
use store::FolderStore;
use storekit::conformance::count;

/// Variable with the folder of a writer. It is unset in the tests themselves.
const FOLDER: &str = "COUNT_IN_FOLDER";

/// Variable with the number of counts of a writer.
const TIMES: &str = "COUNT_TIMES";

const COUNTER: Key = Key::Catalogs;

/// Line that a writer prints for each count that was acknowledged.
const COUNTED: &str = "counted";

#[test]
fn counts_of_all_processes_are_kept() {
    let folder = counter();
    let writers: Vec<Child> = (0..6).map(|_| start(folder.path(), 40)).collect();
    for mut writer in writers {
        assert_eq!(acknowledged(&mut writer), 40);
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(read(folder.path()), 240);
}

#[test]
fn killed_writers_lose_no_count_and_block_no_other() {
    let folder = counter();
    let (mut sure, mut killed) = (0, 0);
    for round in 0..6 {
        let mut writers: Vec<Child> = (0..4).map(|_| start(folder.path(), u32::MAX)).collect();
        sleep(Duration::from_millis(60 + 17 * round));
        for writer in &mut writers {
            writer.kill().unwrap();
            sure += acknowledged(writer);
            killed += 1;
            writer.wait().unwrap();
        }
    }
    let counted = read(folder.path());
    assert!(sure > 0, "the writers had no time to count at all");
    assert!(
        (sure..=sure + killed).contains(&counted),
        "{counted} counts, of which {sure} were acknowledged and at most {killed} were not"
    );
    let mut last = start(folder.path(), 1);
    assert_eq!(acknowledged(&mut last), 1, "nobody holds the lock any more");
    assert_eq!(read(folder.path()), counted + 1);
}

/// Part of a writer. The tests above run it in a process of its own.
#[tokio::test]
#[ignore = "not a test: the process that the others start"]
async fn writer() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let times: u32 = env::var(TIMES).unwrap().parse().unwrap();
    let store = FolderStore::open(folder).unwrap();
    for _ in 0..times {
        while !count(&store, &COUNTER).await {}
        println!("{COUNTED}");
    }
}

fn counter() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(COUNTER.to_string()), "0").expect("a counter");
    folder
}

fn start(folder: &Path, times: u32) -> Child {
    Command::new(env::current_exe().expect("this binary"))
        .args(["--exact", "processes::writer", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(TIMES, times.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Returns the number of counts that were acknowledged to a writer.
fn acknowledged(writer: &mut Child) -> u32 {
    let lines = BufReader::new(writer.stdout.take().expect("its output")).lines();
    // The test harness writes on the same line as the first count.
    lines
        .map_while(Result::ok)
        .map(|line| u32::from(line.ends_with(COUNTED)))
        .sum()
}

fn read(folder: &Path) -> u32 {
    let text =
        std::fs::read_to_string(folder.join(COUNTER.to_string())).expect("the counter is there");
    text.parse()
        .unwrap_or_else(|_| panic!("a whole counter, not {text:?}"))
}
