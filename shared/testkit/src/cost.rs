/// Returns true if a cost grew more than 4.4-fold, for an input of four times the size. What is
/// above four is for tables and buffers that grow in steps. A `before` below `floor` counts as
/// `floor`, because constant costs are a large part of it.
pub const fn grew_more_than_fourfold(before: u64, now: u64, floor: u64) -> bool {
    let before = if before > floor { before } else { floor };
    now * 10 > before * 44
}
