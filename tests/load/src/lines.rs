use bytes::Bytes;
use serde_json::Value;

use crate::violation::Violation;

/// Fields that a query may name.
const FIELDS: [&str; 3] = ["schema", "package", "name"];

/// Values of the fields of a line or a query. An empty one matches anything; a line without the
/// field has an empty one.
pub(crate) type MetaFields = [String; 3];

/// All lines of a catalog with their fields, to check queries without the server's index.
#[derive(Debug)]
pub(crate) struct CatalogLines(Vec<(MetaFields, Bytes)>);

impl CatalogLines {
    pub(crate) fn parse(bytes: &Bytes) -> Result<Self, Violation> {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let metas = lines.map(|line| {
            let meta: Value = serde_json::from_slice(line)?;
            let fields = FIELDS.map(|field| meta[field].as_str().unwrap_or_default().to_owned());
            Ok((fields, bytes.slice_ref(line)))
        });
        metas.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the lines that match, as catalogd does: a line without a schema never matches.
    pub(crate) fn select(&self, query: &MetaFields) -> Vec<u8> {
        let fits = |(asked, had): (&String, &String)| asked.is_empty() || asked == had;
        let matches = |had: &MetaFields| !had[0].is_empty() && query.iter().zip(had).all(fits);
        let found = self.0.iter().filter(|(fields, _)| matches(fields));
        found.flat_map(|(_, line)| line.iter().copied()).collect()
    }

    /// Returns the fields of a random line.
    pub(crate) fn any(&self) -> Option<&MetaFields> {
        let at = rand::random_range(0..self.0.len().max(1));
        self.0.get(at).map(|(fields, _)| fields)
    }
}

/// Returns the query of a URL. Names in the load test need no escapes.
pub(crate) fn url_query(fields: &MetaFields) -> String {
    let said = FIELDS
        .iter()
        .zip(fields)
        .filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = said
        .map(|(field, value)| format!("{field}={value}"))
        .collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_finds_no_line_without_a_schema() {
        let bundle = "{\"name\":\"a.v1\",\"package\":\"a\",\"schema\":\"olm.bundle\"}\n";
        let text = format!("{{\"name\":\"a.v1\",\"package\":\"a\"}}\n{bundle}");
        let lines = CatalogLines::parse(&text.into()).unwrap();
        assert_eq!(
            lines.select(&["", "a", ""].map(str::to_owned)),
            bundle.as_bytes()
        );
    }
}
