use std::cmp::Ordering;

/// The order in which Go's `fs.WalkDir` visits files: component by component, by bytes.
#[must_use]
pub fn walk_order(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}

#[cfg(test)]
mod tests {
    use super::walk_order;

    #[test]
    fn a_folder_sorts_by_its_name_alone() {
        let sorted = ["foo/x", "foo/y/z", "foo-bar/x", "foo.d/x", "foo.yaml", "foo0/x"];
        let mut shuffled = sorted.to_vec();
        shuffled.sort_unstable();
        assert_ne!(shuffled, sorted, "a plain string sort is not enough");
        shuffled.sort_by(|a, b| walk_order(a, b));
        assert_eq!(shuffled, sorted);
    }
}
