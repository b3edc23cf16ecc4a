use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;

use crate::wrong::Wrong;

/// A whole catalog, and what its lines can be asked for: a second opinion on what the server finds by its index.
#[derive(Debug)]
pub(crate) struct Lines {
    bytes: Bytes,
    metas: Vec<Meta>,
}

#[derive(Debug)]
struct Meta {
    named: Named,
    line: Range<usize>,
}

/// What a query may ask for; empty for anything, and for what a line does not have.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Named {
    #[serde(default)]
    pub(crate) schema: String,
    #[serde(default)]
    pub(crate) package: String,
    #[serde(default)]
    pub(crate) name: String,
}

impl Lines {
    pub(crate) fn parse(bytes: Bytes) -> Result<Self, Wrong> {
        let mut metas = Vec::new();
        let mut start = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let end = start + line.len();
            metas.push(Meta {
                named: serde_json::from_slice(line)?,
                line: start..end,
            });
            start = end;
        }
        Ok(Self { bytes, metas })
    }

    /// The lines that match, as catalogd gives them: one without a schema is in no answer.
    pub(crate) fn select(&self, query: &Named) -> Vec<u8> {
        let fits = |asked: &str, had: &str| asked.is_empty() || asked == had;
        let matches = |named: &Named| {
            !named.schema.is_empty()
                && fits(&query.schema, &named.schema)
                && fits(&query.package, &named.package)
                && fits(&query.name, &named.name)
        };
        let found = self.metas.iter().filter(|meta| matches(&meta.named));
        found
            .flat_map(|meta| self.bytes[meta.line.clone()].iter().copied())
            .collect()
    }

    /// One of its metas.
    pub(crate) fn any(&self) -> Option<&Named> {
        let at = rand::random_range(0..self.metas.len().max(1));
        self.metas.get(at).map(|meta| &meta.named)
    }
}

impl Named {
    /// As the query of a URL. All names of the soak are plain.
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
    fn lines_are_found_as_catalogd_finds_them() {
        let text = concat!(
            "{\"name\":\"a\",\"schema\":\"olm.package\"}\n",
            "{\"name\":\"a.v1\",\"package\":\"a\",\"schema\":\"olm.bundle\"}\n",
            "{\"name\":\"a.v1\",\"package\":\"a\"}\n",
        );
        let lines = Lines::parse(Bytes::from_static(text.as_bytes())).unwrap();
        let select = |schema: &str, package: &str, name: &str| {
            let [schema, package, name] = [schema, package, name].map(str::to_owned);
            let found = lines.select(&Named { schema, package, name });
            String::from_utf8(found).unwrap().lines().count()
        };
        assert_eq!(select("olm.package", "", ""), 1);
        // The package itself does not name one, and what has no schema is never found.
        assert_eq!(select("", "a", ""), 1);
        assert_eq!(select("", "", "a.v1"), 1);
        assert_eq!(select("olm.bundle", "b", ""), 0);
    }
}
