use bytes::Bytes;
use serde::Deserialize;

use crate::violation::Violation;

/// All lines of a catalog, to check queries without the server's index.
#[derive(Debug)]
pub(crate) struct CatalogLines(Vec<MetaLine>);

#[derive(Debug)]
struct MetaLine {
    named: MetaFields,
    line: Bytes,
}

/// Fields that a query may name. An empty one matches anything; a line without the field has an empty one.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct MetaFields {
    #[serde(default)]
    pub(crate) schema: String,
    #[serde(default)]
    pub(crate) package: String,
    #[serde(default)]
    pub(crate) name: String,
}

impl CatalogLines {
    pub(crate) fn parse(bytes: &Bytes) -> Result<Self, Violation> {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let metas = lines.map(|line| {
            let named = serde_json::from_slice(line)?;
            let line = bytes.slice_ref(line);
            Ok(MetaLine { named, line })
        });
        metas.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the lines that match, as catalogd does: a line without a schema never matches.
    pub(crate) fn select(&self, query: &MetaFields) -> Vec<u8> {
        let fits = |asked: &str, had: &str| asked.is_empty() || asked == had;
        let matches = |named: &MetaFields| {
            !named.schema.is_empty()
                && fits(&query.schema, &named.schema)
                && fits(&query.package, &named.package)
                && fits(&query.name, &named.name)
        };
        let found = self.0.iter().filter(|meta| matches(&meta.named));
        found.flat_map(|meta| meta.line.iter().copied()).collect()
    }

    /// Returns a random meta.
    pub(crate) fn any(&self) -> Option<&MetaFields> {
        let at = rand::random_range(0..self.0.len().max(1));
        self.0.get(at).map(|meta| &meta.named)
    }
}

impl MetaFields {
    /// Returns the fields as the query of a URL. Names in the load test need no escapes.
    pub(crate) fn query(&self) -> String {
        let pairs = [
            ("schema", &self.schema),
            ("package", &self.package),
            ("name", &self.name),
        ];
        let said = pairs.iter().filter(|(_, value)| !value.is_empty());
        said.map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join("&")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_finds_no_line_without_a_schema() {
        let bundle = "{\"name\":\"a.v1\",\"package\":\"a\",\"schema\":\"olm.bundle\"}\n";
        let text = format!("{{\"name\":\"a.v1\",\"package\":\"a\"}}\n{bundle}");
        let query = MetaFields {
            package: "a".to_owned(),
            ..MetaFields::default()
        };
        let lines = CatalogLines::parse(&text.into()).unwrap();
        assert_eq!(lines.select(&query), bundle.as_bytes());
    }
}
