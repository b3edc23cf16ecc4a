//! Prints the mutated catalogs of the tests, one JSON object a line: `rule`, `edits` and the text
//! of the file.
//!
//! Usage: `mutations [FILE]`. FILE has canonical lines of a package with three bundles, in place of
//! the small catalog.
#![expect(clippy::print_stdout, reason = "what it prints is its result")]

#[path = "../tests/it/mutations/mod.rs"]
mod mutations;

use std::{env, error::Error, fs};

use mutations::Catalog;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let catalog = match env::args().nth(1) {
        Some(file) => {
            Catalog::of_lines(&fs::read_to_string(file)?).ok_or("the file is not such a package")?
        }
        None => Catalog::small(),
    };
    for mutation in mutations::all() {
        let text = catalog.mutated(&mutation).text();
        let package = catalog.package();
        println!(
            "{}",
            json!({"rule": mutation.rule, "edits": mutation.edits, "package": package, "text": text})
        );
    }
    Ok(())
}
