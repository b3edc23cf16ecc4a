//! Limits of a query, checked before anything is validated or read: each check takes time in proportion to the text.

use std::collections::{HashMap, HashSet};

use async_graphql::{
    Name, Positioned,
    parser::types::{ExecutableDocument, FragmentDefinition, Selection, SelectionSet},
};

use crate::{
    introspection::{IntrospectionCost, is_introspection},
    scan::scan,
};

/// Maximum depth of a query, in selection sets, as in catalogd.
pub(crate) const DEPTH_MAX: usize = 10;

/// Maximum number of aliases in a query, as in catalogd.
const ALIASES_MAX: usize = 50;

/// Maximum number of fields in a query with each fragment once, as in catalogd.
const FIELDS_MAX: usize = 500;

/// Maximum number of fields with each fragment wherever it is spread: ten times as many as without fragments. Fragments within
/// fragments could else double the work with each line of a query.
const EXPANDED_MAX: usize = 5_000;

/// Maximum depth of selection sets with each fragment wherever it is spread: a fragment that was seen at a lower depth is not
/// counted again above.
const EXPANDED_DEPTH_MAX: usize = 30;

/// Resources that one query may use.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Maximum size of the answer, and of the values for it in memory, in bytes. Default 32 MiB: a hundred of the largest
    /// bundles have 20.
    pub answer: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { answer: 32 << 20 }
    }
}

/// Parses a query and checks its limits.
///
/// # Errors
/// A message for the client.
pub(crate) fn parse(query: &str, introspection: IntrospectionCost) -> Result<ExecutableDocument, String> {
    // First, because the parser recurses where the query nests.
    scan(query)?;
    let document = async_graphql::parser::parse_query(query).map_err(|error| error.to_string())?;
    check(&document)?;
    introspection.check(&document)?;
    Ok(document)
}

fn check(document: &ExecutableDocument) -> Result<(), String> {
    let mut counter = Counter {
        fragments: &document.fragments,
        aliases: 0,
        fields: 0,
        seen: HashSet::new(),
        in_introspection: false,
    };
    let mut reached = HashSet::new();
    for (_, operation) in document.operations.iter() {
        counter.seen.clear();
        counter.count(&operation.node.selection_set.node, 1)?;
        reached.extend(counter.seen.iter().copied());
    }
    // What no operation reaches is not counted, but would be validated.
    if let Some(unused) = document.fragments.keys().find(|name| !reached.contains(*name)) {
        return Err(format!("fragment {unused} is never used"));
    }
    let mut expanded = 0;
    for (_, operation) in document.operations.iter() {
        let selection = &operation.node.selection_set.node;
        expand(selection, &document.fragments, 1, &mut expanded)?;
    }
    Ok(())
}

/// Counts as catalogd does: all operations, each fragment once for each of them.
struct Counter<'a> {
    fragments: &'a HashMap<Name, Positioned<FragmentDefinition>>,
    aliases: usize,
    fields: usize,
    seen: HashSet<&'a Name>,
    in_introspection: bool,
}

impl<'a> Counter<'a> {
    fn count(&mut self, set: &'a SelectionSet, depth: usize) -> Result<(), String> {
        // A field without fields has a set too, but an empty one.
        if set.items.is_empty() {
            return Ok(());
        }
        if depth > DEPTH_MAX && !self.in_introspection {
            return Err(format!("query exceeds maximum depth of {DEPTH_MAX}"));
        }
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => {
                    self.fields += 1;
                    self.aliases += usize::from(field.node.alias.is_some());
                    self.check()?;
                    // The query that tools send is deeper; its cost has a limit of its own.
                    let is_outermost = !self.in_introspection && is_introspection(field.node.name.node.as_str());
                    self.in_introspection |= is_outermost;
                    self.count(&field.node.selection_set.node, depth + 1)?;
                    self.in_introspection &= !is_outermost;
                }
                Selection::InlineFragment(inline) => self.count(&inline.node.selection_set.node, depth + 1)?,
                Selection::FragmentSpread(spread) => {
                    let found = self.fragments.get_key_value(&spread.node.fragment_name.node);
                    if let Some((name, fragment)) = found
                        && self.seen.insert(name)
                    {
                        self.count(&fragment.node.selection_set.node, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.fields > FIELDS_MAX {
            return Err(format!("query exceeds maximum field count of {FIELDS_MAX}"));
        }
        if self.aliases > ALIASES_MAX {
            return Err(format!("query exceeds maximum alias count of {ALIASES_MAX}"));
        }
        Ok(())
    }
}

/// Counts the fields and spreads that are resolved. It ends at the limit, also for fragments that spread each other.
fn expand(
    set: &SelectionSet,
    fragments: &HashMap<Name, Positioned<FragmentDefinition>>,
    depth: usize,
    found: &mut usize,
) -> Result<(), String> {
    if depth > EXPANDED_DEPTH_MAX {
        return Err(format!(
            "query exceeds maximum depth of {EXPANDED_DEPTH_MAX} with its fragments"
        ));
    }
    for selection in &set.items {
        *found += 1;
        if *found > EXPANDED_MAX {
            return Err(format!(
                "query exceeds maximum field count of {EXPANDED_MAX} with its fragments"
            ));
        }
        let inner = match &selection.node {
            Selection::Field(field) => Some(&field.node.selection_set.node),
            Selection::InlineFragment(inline) => Some(&inline.node.selection_set.node),
            Selection::FragmentSpread(spread) => fragments
                .get(&spread.node.fragment_name.node)
                .map(|fragment| &fragment.node.selection_set.node),
        };
        if let Some(inner) = inner {
            expand(inner, fragments, depth + 1, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(query: &str) -> Result<(), String> {
        parse(query, IntrospectionCost::default()).map(drop)
    }

    fn nested(depth: usize) -> String {
        format!("{}a{}", "{a".repeat(depth - 1) + "{", "}".repeat(depth))
    }

    fn many(count: usize, field: impl Fn(usize) -> String) -> String {
        let fields: Vec<String> = (0..count).map(field).collect();
        format!("{{{}}}", fields.join(" "))
    }

    #[test]
    fn check_takes_exactly_the_limits() {
        let fields = |count| many(count, |_| "a".to_owned());
        let aliases = |count| many(count, |at| format!("a{at}: a"));
        for (limit, query) in [
            ("depth", &nested as &dyn Fn(usize) -> String),
            ("field", &fields),
            ("alias", &aliases),
        ] {
            let most = match limit {
                "depth" => DEPTH_MAX,
                "field" => FIELDS_MAX,
                _ => ALIASES_MAX,
            };
            assert_eq!(checked(&query(most)), Ok(()), "{limit}");
            let error = checked(&query(most + 1)).unwrap_err();
            assert!(error.contains(limit), "{limit}: {error}");
        }
    }

    #[test]
    fn check_takes_introspection_of_any_depth() {
        assert_eq!(checked(include_str!("../tests/introspection.graphql")), Ok(()));
        let error = checked(&format!("{{__schema {{a}} {}", &nested(DEPTH_MAX + 1)[1..])).unwrap_err();
        assert!(error.contains("depth"), "{error}");
    }

    #[test]
    fn check_counts_a_fragment_once_for_each_operation() {
        let fragment = format!("fragment f on Query {}", many(300, |_| "a".to_owned()));
        assert_eq!(checked(&format!("{{...f ...f}} {fragment}")), Ok(()));
        let two = format!("query a {{...f}} query b {{...f}} {fragment}");
        assert!(checked(&two).unwrap_err().contains("field count of 500"));
    }

    #[test]
    fn check_refuses_fragments_that_expand_to_too_many_fields() {
        let mut query = "{...f0}".to_owned();
        for at in 0..30 {
            let next = at + 1;
            query += &format!(" fragment f{at} on Query {{...f{next} ...f{next} ...f{next}}}");
        }
        query += " fragment f30 on Query {a}";
        // Each is seen at a low depth first, as the check of catalogd needs it.
        let spreads: Vec<String> = (0..=30).rev().map(|at| format!("...f{at}")).collect();
        let query = query.replacen("{...f0}", &format!("{{{}}}", spreads.join(" ")), 1);
        assert!(checked(&query).unwrap_err().contains("with its fragments"));
    }

    #[test]
    fn check_refuses_cycles_and_unused_fragments() {
        let cycle = "{...f} fragment f on Query {...g} fragment g on Query {...f}";
        assert!(checked(cycle).unwrap_err().contains("with its fragments"));
        let unused = "{a} fragment f on Query {a}";
        assert_eq!(checked(unused), Err("fragment f is never used".to_owned()));
    }
}
