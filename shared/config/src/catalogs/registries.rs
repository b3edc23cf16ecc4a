use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::de::IgnoredAny;
use source::HeaderFiles;

use super::{ConfigProblems, host_and_port, section::Section, values};

/// Settings of the registry client, from `registries` of `catalogs.yaml` and from flags.
#[derive(Debug, Default)]
pub struct RegistryConfig {
    /// Credential files, as `podman login --authfile` writes them. Default: where podman and docker keep theirs.
    pub auth_files: Vec<PathBuf>,
    /// Files of header fields for web servers, by `HOST[:PORT]`. Default: none.
    pub header_files: HeaderFiles,
    /// PEM bundles of certificates to trust in addition to the system's.
    pub ca_files: Vec<PathBuf>,
    /// Registries without TLS, as `HOST[:PORT]`. All others must speak TLS.
    pub plain_http: Vec<String>,
    /// Hosts on private or loopback addresses that redirects and token realms may lead to, as `HOST[:PORT]`.
    pub internal_hosts: Vec<String>,
    /// Platform of the image to read from a multi-platform index, as `OS/ARCH`. Default: linux/amd64.
    pub platform: Option<String>,
}

impl RegistryConfig {
    pub(crate) fn read(mut section: Section<'_>) -> Self {
        let config = Self {
            auth_files: section.field("authFiles").unwrap_or_default(),
            header_files: header_files(&mut section),
            ca_files: section.field("caFiles").unwrap_or_default(),
            plain_http: section.parsed_list("plainHttp", host_and_port),
            internal_hosts: section.parsed_list("internalHosts", host_and_port),
            platform: section.parsed("platform", |text| values::platform(text).map(|_| text.to_owned())),
        };
        section.finish();
        config
    }

    /// Adds other settings. Lists grow; the platform of `other` wins.
    pub(crate) fn extend(&mut self, other: Self) {
        self.auth_files.extend(other.auth_files);
        self.header_files.extend(other.header_files);
        self.ca_files.extend(other.ca_files);
        self.plain_http.extend(other.plain_http);
        self.internal_hosts.extend(other.internal_hosts);
        self.platform = other.platform.or(self.platform.take());
    }

    /// Checks that the files can be read, so that a mistake shows before a port is open and not at the first poll.
    fn check_files(&self, problems: &mut ConfigProblems) {
        for path in &self.auth_files {
            let place = format!("registries, authFiles, {}", path.display());
            let read = fs::read(path).map_err(|error| format!("cannot be read: {error}"));
            let json = read.and_then(|bytes| {
                // The parser's message could quote a password.
                let parsed = serde_json::from_slice::<IgnoredAny>(&bytes);
                parsed.map_err(|_| "is not JSON as `podman login --authfile` writes it".to_owned())
            });
            problems.ok(place, json);
        }
        for path in self.header_files.paths() {
            let read = source::read_header_file(path).map_err(|error| model::text::chain(&error));
            problems.ok("registries, headerFiles", read);
        }
        for path in &self.ca_files {
            let place = format!("registries, caFiles, {}", path.display());
            problems.ok(
                place,
                fs::read(path).map_err(|error| format!("cannot be read: {error}")),
            );
        }
    }

    /// Returns the settings of the registry client.
    pub(crate) fn settings(self, limits: source::ImageLimits, problems: &mut ConfigProblems) -> source::SourceSettings {
        self.check_files(problems);
        let mut settings = source::SourceSettings {
            auth_files: self.auth_files,
            header_files: self.header_files,
            limits,
            ..source::SourceSettings::default()
        };
        settings.http.ca_files = self.ca_files;
        settings.http.plain_http = source::PlainHttp::Hosts(self.plain_http);
        settings.http.internal_hosts = self.internal_hosts;
        // Checked here too, since a flag has not been checked yet.
        let platform = self
            .platform
            .and_then(|text| problems.ok("platform", values::platform(&text)));
        if let Some(platform) = platform {
            settings.platform = platform;
        }
        settings
    }
}

/// Reads the mapping of hosts to files.
fn header_files(section: &mut Section<'_>) -> HeaderFiles {
    let paths: BTreeMap<String, PathBuf> = section.field("headerFiles").unwrap_or_default();
    let place = section.place_of("headerFiles");
    let mut files = HeaderFiles::default();
    for (host, path) in paths {
        if let Some(host) = section.problems().ok(&place, host_and_port(&host)) {
            files.insert(&host, path);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::catalogs::ConfigLoader;

    #[test]
    fn registries_unusable_files_are_problems() {
        let dir = std::env::temp_dir().join(format!("catalog-mirror-config-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name);
        fs::write(path("good.json"), "{}").unwrap();
        fs::write(path("bad.json"), "{\"auths\": hunter2}").unwrap();
        let mut loader = ConfigLoader::new(Duration::from_secs(600));
        loader.registries(RegistryConfig {
            auth_files: vec![path("good.json"), path("bad.json"), path("none.json")],
            ca_files: vec![path("none.pem")],
            platform: Some("linux".to_owned()),
            ..RegistryConfig::default()
        });
        let problems = loader.finish().unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        for part in [
            "bad.json: is not JSON",
            "none.json: cannot be read",
            "caFiles, ",
            "none.pem: cannot be read",
            "OS/ARCH",
        ] {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
        assert!(
            !problems.contains("good.json") && !problems.contains("hunter2"),
            "{problems}"
        );
    }
}
