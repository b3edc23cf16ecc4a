//! Ways to lose an image between its registry and that of a site, with the real skopeo. After each of
//! them a walk over the registry from outside finds no catalog that names an absent image.

mod deliveries;
mod fields;
mod transfer;
mod ways;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::transfer::Transfer;
use self::ways::Loss;

/// Ways that are tried at the same time. Most of them wait for retries.
const AT_ONCE: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn carry_offers_no_bundle_without_its_images_whatever_is_lost() {
    let losses = ways::all();
    assert!(losses.len() >= 50, "{} ways", losses.len());
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut tries = JoinSet::new();
    for loss in losses {
        let permits = Arc::clone(&permits);
        tries.spawn(async move {
            let _permit = permits.acquire().await;
            let fault = lose(&loss).await.err()?;
            Some(format!("{}: {fault}", loss.name))
        });
    }
    let mut failed = Vec::new();
    while let Some(tried) = tries.join_next().await {
        failed.extend(tried.expect("no assertion fails"));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Loses an image, carries all the same, and walks over what is there.
async fn lose(loss: &Loss) -> Result<(), String> {
    let transfer = Transfer::start().await;
    (loss.before)(&transfer);
    let out = transfer.out();
    (loss.between)(&transfer);
    let taken = transfer.taken();
    let offered = Vec::from_iter(transfer.walk()).join(" ");
    let said = format!(
        "{}\n{}\n{}\n{}",
        out.stdout, out.stderr, taken.stdout, taken.stderr
    );
    let codes = [out.code, taken.code];
    if codes != loss.codes.map(Some) {
        return Err(format!("exit codes {codes:?}\n{said}"));
    }
    if offered != loss.offered {
        return Err(format!("offers {offered:?}\n{said}"));
    }
    if !said.contains(&loss.says) {
        return Err(format!("does not say {:?}\n{said}", loss.says));
    }
    Ok(())
}
