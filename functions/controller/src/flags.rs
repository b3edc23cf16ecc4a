//! The command line: the flags of catalogd v1.11.0 with its defaults, and `--store`.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Parser};
use store::StorePlace;

use crate::secrets::ObjectName;

/// Flags of catalogd that are accepted and mean nothing here. The README says why.
const IGNORED: &[&str] = &[
    "add_dir_header",
    "alsologtostderr",
    "feature-gates",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "logtostderr",
    "one_output",
    "pprof-bind-address",
    "skip_headers",
    "skip_log_headers",
    "stderrthreshold",
    "tls-custom-ciphers",
    "tls-custom-curves",
    "tls-custom-version",
    "tls-profile",
    "vmodule",
];

/// Verbosity of klog from which its users log details of each step.
const DEBUG_VERBOSITY: u8 = 4;

/// Serves the ClusterCatalogs of a cluster, in place of catalogd.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Other flags of catalogd are accepted and have no effect.",
    max_term_width = 100,
    // The last one of a repeated flag counts, as in Go programs.
    args_override_self = true
)]
pub(crate) struct Flags {
    /// Address of /metrics, such as :7443. Needs --tls-cert and --tls-key. Default with these:
    /// :7443.
    #[arg(long, value_name = "ADDRESS")]
    metrics_bind_address: Option<String>,
    /// Address of /healthz and /readyz. `0` serves none.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub(crate) health_probe_bind_address: String,
    /// Work on ClusterCatalogs only while this replica holds the Lease catalogd-operator-lock.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set)]
    pub(crate) leader_elect: bool,
    /// Namespace of the Lease. Default: the namespace of this pod or of the kubeconfig.
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    pub(crate) system_namespace: String,
    /// Address of the HTTP API.
    #[arg(long, value_name = "ADDRESS", default_value = ":8443")]
    pub(crate) catalogs_server_addr: String,
    /// Host, and port if it is not the default one, under which clients reach the HTTP API.
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        default_value = "catalogd-service.olmv1-system.svc"
    )]
    pub(crate) external_address: String,
    /// Folder for the default store.
    #[arg(long, value_name = "DIR", default_value = "/var/cache/")]
    pub(crate) cache_dir: PathBuf,
    /// Store that all replicas share: a folder or s3://BUCKET[/PREFIX]. Default: one for each, the
    /// folder catalog-mirror in --cache-dir.
    #[arg(long, value_name = "DIR|S3")]
    pub(crate) store: Option<StorePlace>,
    /// Time between two removals of catalogs that have no ClusterCatalog from the default store,
    /// such as 12h0m0s.
    #[arg(long, value_name = "DURATION", default_value = "12h0m0s", value_parser = humantime::parse_duration)]
    pub(crate) gc_interval: Duration,
    /// PEM chain of certificates for the HTTP API and /metrics. Reloaded when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM private key of --tls-cert.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Folder of PEM certificates to trust for registries, in addition to the system's: its files
    /// *.crt, read again when they change.
    #[arg(long, value_name = "DIR")]
    pub(crate) pull_cas_dir: Option<PathBuf>,
    /// Secret with logins for registries, read again before each poll.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = object_name)]
    pub(crate) global_pull_secret: Option<ObjectName>,
    /// File with the address of the API server and how to log in. Default: that of KUBECONFIG, else
    /// the pod's service account.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Port of the mutating webhook for ClusterCatalogs, served with --tls-cert.
    #[arg(long, value_name = "PORT", default_value_t = 9443)]
    pub(crate) webhook_server_port: u16,
    /// Write a JSON line for each request to the HTTP API to standard output.
    #[arg(long)]
    pub(crate) access_log: bool,
    /// Log level of klog: from 4 on, debug.
    #[arg(long = "v", short = 'v', value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
    #[arg(long = IGNORED[0], aliases = &IGNORED[1..], num_args = 0..=1, action = ArgAction::Append, hide = true)]
    _ignored: Vec<String>,
}

impl Flags {
    /// Returns the log filter for the verbosity.
    pub(crate) const fn log_filter(&self) -> &'static str {
        if self.verbosity < DEBUG_VERBOSITY {
            "info"
        } else {
            "debug"
        }
    }

    /// Returns the address of `/metrics`; `None` if it is not served.
    ///
    /// # Errors
    /// For an address without a certificate: tokens must not be sent in clear text.
    pub(crate) fn metrics_address(&self) -> anyhow::Result<Option<&str>> {
        match (self.metrics_bind_address.as_deref(), &self.tls_cert) {
            (None | Some(""), None) | (Some("0"), _) => Ok(None),
            (None | Some(""), Some(_)) => Ok(Some(":7443")),
            (address @ Some(_), Some(_)) => Ok(address),
            (Some(_), None) => {
                anyhow::bail!("--metrics-bind-address needs --tls-cert and --tls-key")
            }
        }
    }

    /// Returns the URL below which catalogs are served.
    pub(crate) fn base(&self) -> String {
        let scheme = if self.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}/catalogs", self.external_address)
    }
}

fn object_name(text: &str) -> Result<ObjectName, &'static str> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(ObjectName::new(namespace, name))
        }
        _ => Err("write NAMESPACE/NAME"),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory};

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Flags, clap::Error> {
        let arguments = std::iter::once(&"catalogd").chain(arguments);
        Flags::try_parse_from(arguments)
    }

    #[test]
    fn flags_of_catalogd_deployment_are_accepted() {
        let flags = parse(&[
            "--leader-elect",
            "--metrics-bind-address=:7443",
            "--external-address=catalogd-service.olmv1-system.svc",
            "--feature-gates=APIV1MetasHandler=false",
            "--tls-cert=/var/certs/tls.crt",
            "--tls-key=/var/certs/tls.key",
            "--pull-cas-dir=/var/ca-certs",
            "--global-pull-secret=openshift-config/pull-secret",
        ])
        .unwrap();
        assert!(flags.leader_elect);
        assert_eq!(flags.metrics_address().unwrap(), Some(":7443"));
        assert_eq!(
            flags.base(),
            "https://catalogd-service.olmv1-system.svc/catalogs"
        );
        assert_eq!(flags.gc_interval, Duration::from_secs(12 * 3600));
        assert_eq!(
            flags.global_pull_secret.unwrap().namespace,
            "openshift-config"
        );
    }

    #[test]
    fn flags_have_defaults_of_catalogd() {
        let flags = parse(&[]).unwrap();
        assert!(!flags.leader_elect);
        assert_eq!(flags.metrics_address().unwrap(), None);
        assert_eq!(flags.health_probe_bind_address, ":8081");
        assert_eq!(flags.catalogs_server_addr, ":8443");
        assert_eq!(flags.webhook_server_port, 9443);
        assert_eq!(flags.cache_dir, PathBuf::from("/var/cache/"));
        assert_eq!(flags.log_filter(), "info");
        assert!(parse(&["--leader-elect=true"]).unwrap().leader_elect);
        assert!(
            !parse(&["--leader-elect", "--leader-elect=false"])
                .unwrap()
                .leader_elect
        );
        assert_eq!(parse(&["--v=4"]).unwrap().log_filter(), "debug");
    }

    #[test]
    fn flags_that_do_not_fit_together_are_refused() {
        let pull_secrets = ["--global-pull-secret=a", "--global-pull-secret=a/b/c"];
        for wrong in pull_secrets
            .into_iter()
            .chain(["--tls-cert=a", "--unknown"])
        {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
        let without_tls = parse(&["--metrics-bind-address=:7443"]).unwrap();
        assert!(without_tls.metrics_address().is_err());
    }

    #[test]
    fn flags_without_effect_are_in_the_readme() {
        let readme = include_str!("../README.md");
        for flag in IGNORED {
            assert!(
                readme.contains(&format!("`--{flag}`")),
                "{flag} is not in the README"
            );
            assert!(parse(&[&format!("--{flag}=1")]).is_ok(), "{flag}");
        }
        assert!(parse(&["--logtostderr", "--vmodule=a=1", "--vmodule"]).is_ok());
        let all = Flags::command();
        for flag in all.get_arguments().filter_map(Arg::get_long) {
            assert!(
                readme.contains(&format!("`--{flag}`")),
                "{flag} is not in the README"
            );
        }
    }
}
