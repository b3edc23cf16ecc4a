use std::cmp::Ordering;

/// Compares two paths in the order in which Go's `fs.WalkDir` visits files: component by component, by bytes.
///
/// ```
/// use catalog_mirror_fbc::walk_order;
///
/// let mut paths = ["foo.yaml", "foo-bar/a", "foo/a"];
/// paths.sort_by(|a, b| walk_order(a, b));
/// assert_eq!(paths, ["foo/a", "foo-bar/a", "foo.yaml"]);
/// ```
#[must_use]
pub fn walk_order(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}

#[cfg(test)]
mod tests {
    use super::walk_order;

    #[test]
    fn walk_order_sorts_a_folder_by_its_name_without_the_slash() {
        let sorted = ["foo/x", "foo/y/z", "foo-bar/x", "foo.d/x", "foo.yaml", "foo0/x"];
        let mut shuffled = sorted.to_vec();
        shuffled.sort_unstable();
        assert_ne!(shuffled, sorted, "a plain string sort is not enough");
        shuffled.sort_by(|a, b| walk_order(a, b));
        assert_eq!(shuffled, sorted);
    }
}
