use super::transfer::Transfer;
use crate::support::wait_for_next_second;

/// Ten deliveries, of which each brings a version and drops one; the first five on disks of their own,
/// then one disk, whose states the store of the site keeps.
#[tokio::test(flavor = "multi_thread")]
async fn carry_prune_after_ten_deliveries_leaves_what_the_kept_states_need() {
    let transfer = Transfer::start().await;
    let to = format!("http://{}/olm --store store", transfer.target.host());
    let deliver = |month: usize| {
        // A later delivery is one of a later second.
        wait_for_next_second();
        let disk = format!("disk{}", month.min(6));
        transfer.publish_months(month.saturating_sub(2).max(1)..=month);
        transfer.carry(&format!("out isc.yaml {disk}")).exits(0);
        transfer.carry(&format!("in {disk} {to}")).exits(0);
        let head = format!("a.v{month}");
        assert!(transfer.walk().contains(&head), "{head}");
    };
    (1..=8).for_each(deliver);
    // The site goes back by one, and takes the next deliveries all the same.
    transfer
        .work
        .run("rollback --store store index-v1 --previous")
        .exits(0);
    transfer.carry(&format!("push index-v1 {to}")).exits(0);
    assert!(!transfer.walk().contains("a.v8"));
    (9..=10).for_each(deliver);
    assert_eq!(transfer.months_there(), Vec::from_iter(1..=10));
    let history = transfer
        .work
        .run("history --store store --json index-v1")
        .exits(0);
    let states = history.json();
    let states = states.as_array().expect("it is a list").len();
    // The states of the last disk are those of the months 6 to 10, and need the images of 4 to 10.
    let prune = format!("prune {to}");
    let listed = transfer.carry(&prune).exits(0);
    listed.prints(&format!("3 manifests in 2 repositories are not needed by the {states} states of the store, which need 7 images"));
    assert_eq!(transfer.months_there(), Vec::from_iter(1..=10));
    transfer
        .carry(&format!("{prune} --yes"))
        .exits(0)
        .prints("3 manifests are deleted");
    assert_eq!(transfer.months_there(), Vec::from_iter(4..=10));
    assert_eq!(Vec::from_iter(transfer.walk()).join(" "), "a.v10 a.v8 a.v9");
    // Each kept state can still be offered.
    for state in history.json().as_array().expect("it is a list") {
        let hash = state["contentHash"].as_str().expect("a state has one");
        transfer
            .carry(&format!("push index-v1@{} {to}", &hash[..12]))
            .exits(0);
        transfer.walk();
    }
}
