use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::de::IgnoredAny;
use source::{PlainHttp, SourceSettings};

use super::{ConfigProblems, host_and_port, platform, section::Section};

/// Adds `registries` of `catalogs.yaml`. Lists grow; the last platform counts.
pub(crate) fn add(settings: &mut SourceSettings, mut section: Section<'_>) {
    let auth_files: Vec<PathBuf> = section.field("authFiles").unwrap_or_default();
    settings.auth_files.extend(auth_files);
    let header_files: BTreeMap<String, PathBuf> = section.field("headerFiles").unwrap_or_default();
    let place = section.place_of("headerFiles");
    for (host, path) in header_files {
        if let Some(host) = section.problems().ok(&place, host_and_port(&host)) {
            settings.header_files.insert(&host, path);
        }
    }
    let ca_files: Vec<PathBuf> = section.field("caFiles").unwrap_or_default();
    settings.http.ca_files.extend(ca_files);
    if let PlainHttp::Hosts(hosts) = &mut settings.http.plain_http {
        hosts.extend(section.parsed_list("plainHttp", host_and_port));
    }
    let internal_hosts = section.parsed_list("internalHosts", host_and_port);
    settings.http.internal_hosts.extend(internal_hosts);
    if let Some(platform) = section.parsed("platform", platform) {
        settings.platform = platform;
    }
    section.finish();
}

/// Checks that the files can be read, so that a mistake shows before a port is open and not at the first poll.
pub(crate) fn check_files(settings: &SourceSettings, problems: &mut ConfigProblems) {
    for path in &settings.auth_files {
        let place = format!("registries, authFiles, {}", path.display());
        let read = fs::read(path).map_err(|error| format!("cannot be read: {error}"));
        let json = read.and_then(|bytes| {
            // The parser's message could quote a password.
            let parsed = serde_json::from_slice::<IgnoredAny>(&bytes);
            parsed.map_err(|_| "is not JSON as `podman login --authfile` writes it".to_owned())
        });
        problems.ok(place, json);
    }
    for path in settings.header_files.paths() {
        let read = source::read_header_file(path).map_err(|error| model::text::chain(&error));
        problems.ok("registries, headerFiles", read);
    }
    for path in &settings.http.ca_files {
        let place = format!("registries, caFiles, {}", path.display());
        let read = fs::read(path).map_err(|error| format!("cannot be read: {error}"));
        problems.ok(place, read);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use crate::catalogs::ConfigLoader;

    #[test]
    fn registries_unusable_files_are_problems() {
        let dir = std::env::temp_dir().join(format!("catalog-mirror-config-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name);
        fs::write(path("good.json"), "{}").unwrap();
        fs::write(path("bad.json"), "{\"auths\": hunter2}").unwrap();
        let mut loader = ConfigLoader::new(Duration::from_secs(600));
        let settings = loader.sources();
        settings.auth_files = vec![path("good.json"), path("bad.json"), path("none.json")];
        settings.http.ca_files = vec![path("none.pem")];
        let problems = loader.finish().unwrap_err().to_string();
        fs::remove_dir_all(&dir).unwrap();
        for part in [
            "bad.json: is not JSON",
            "none.json: cannot be read",
            "caFiles, ",
            "none.pem: cannot be read",
        ] {
            assert!(problems.contains(part), "{part} is not in {problems}");
        }
        assert!(
            !problems.contains("good.json") && !problems.contains("hunter2"),
            "{problems}"
        );
    }
}
