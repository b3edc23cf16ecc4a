//! Cost of one byte of a layer: memory and allocations grow with its size, not faster.
//!
//! Counts are compared, never times.
#![expect(clippy::print_stdout, reason = "`--nocapture` shows what was measured")]

mod layers;

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use allocation_counter::AllocationInfo;
use layers::{Family, families};
use oci::{
    BlobRef, Digest, FileSink, ImageLimits, LayerScan, OverlayState, Root, UnpackBudget,
    UnpackError,
};
use testkit::grew_more_than_fourfold;

/// Size of the largest layer, in bytes. A family with a limit exceeds it with a layer of this size,
/// or a smaller one.
const LARGEST: usize = 16 << 20;
/// Costs below this many bytes are not compared: constant costs are a large part of them.
const FLOOR_BYTES: u64 = 1 << 20;
/// Numbers of allocations below this one are not compared.
const FLOOR_COUNT: u64 = 1000;

/// Reads every file to its end and forgets it.
struct Forget;

impl FileSink for Forget {
    fn file(&mut self, _: &str, _: u64, content: &mut dyn Read) -> io::Result<()> {
        io::copy(content, &mut io::sink()).map(drop)
    }

    fn link(&mut self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a layer twice, as the upper and the lower layer of an image, so that the lower one is
/// compared with all of the upper.
fn read(layer: &[u8]) -> Result<(), UnpackError> {
    let limits = ImageLimits::default();
    let budget = Arc::new(UnpackBudget::new(&limits, work::Budget::default()));
    let root = Root::around(&[vec!["configs".to_owned()]]);
    let mut state = OverlayState::new(Forget);
    for depth in 0..2 {
        let scan = LayerScan {
            depth,
            layer: BlobRef {
                digest: Digest::of(b""),
                size: layer.len() as u64,
            },
            root: root.clone(),
            budget: Arc::clone(&budget),
        };
        let mut above = Some(state);
        match scan.run(&mut &*layer, || above.take())? {
            Some(next) => state = next,
            None => return Ok(()),
        }
    }
    state.finish(&root, &limits).map(drop)
}

fn measure(family: &Family, sizes: &[usize]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut before: Option<AllocationInfo> = None;
    for &size in sizes {
        let layer = family.layer(size);
        let mut outcome = Ok(());
        let cost = allocation_counter::measure(|| outcome = read(&layer));
        let place = format!("{}, {size} bytes", family.name);
        println!(
            "{place}: {} bytes at most, {} in all, {}",
            cost.bytes_max, cost.bytes_total, cost.count_total
        );
        if cost.bytes_max > family.peak * size as u64 / 10 + FLOOR_BYTES {
            wrong.push(format!("{place}: {cost:?}"));
        }
        match (outcome, before) {
            (Ok(()), Some(before)) if grew(&before, &cost) => {
                wrong.push(format!("{place}: {cost:?} after {before:?}"));
            }
            (Ok(()), _) => {}
            // What exceeds a limit is bounded.
            (Err(UnpackError::Limit(limit)), Some(_)) if Some(limit.name) == family.limit => {
                return wrong;
            }
            (Err(error), _) => wrong.push(format!("{place}: {error:?}")),
        }
        before = Some(cost);
    }
    if family.limit.is_some() && sizes.contains(&LARGEST) {
        wrong.push(format!("{} exceeds no limit", family.name));
    }
    wrong
}

fn grew(before: &AllocationInfo, now: &AllocationInfo) -> bool {
    grew_more_than_fourfold(before.bytes_max, now.bytes_max, FLOOR_BYTES)
        || grew_more_than_fourfold(before.bytes_total, now.bytes_total, FLOOR_BYTES)
        || grew_more_than_fourfold(before.count_total, now.count_total, FLOOR_COUNT)
}

fn measure_all(sizes: &[usize]) {
    let families = families();
    let wrong = thread::scope(|scope| {
        let spawn = |family| scope.spawn(move || measure(family, sizes));
        let measured: Vec<_> = families.iter().map(spawn).collect();
        let wrong = measured
            .into_iter()
            .flat_map(|family| family.join().unwrap());
        wrong.collect::<Vec<_>>()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn cost_of_layer_is_linear_in_its_bytes() {
    measure_all(&[1 << 20, 4 << 20]);
}

#[test]
#[ignore = "takes most of a minute without optimisation"]
fn cost_of_large_layer_is_linear_or_a_limit_refuses_it() {
    measure_all(&[1 << 20, 4 << 20, LARGEST]);
}
