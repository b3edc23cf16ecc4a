use super::{Place, Report, Rule, ShardValidator, image::reference_error, quoted, value::Value};
use crate::version::{is_release, parse_version};

impl ShardValidator {
    /// Checks what a bundle says by itself. Returns its version and release as one text, if they
    /// are valid.
    pub(super) fn check_bundle(
        &self,
        bundle: &Value<'_>,
        place: Place<'_>,
        report: &mut Report<'_>,
    ) -> Option<String> {
        check_images(bundle, place, report);
        let mut versions = Vec::new();
        let mut objects = 0;
        let mut csvs = 0;
        for (at, property) in bundle.list("properties").iter().enumerate() {
            let value = property.field("value");
            if value.is_absent() {
                report.add(
                    Rule::PropertyInvalid,
                    place,
                    &format!("properties[{at}]: has no value"),
                );
            }
            match property.text("type") {
                "olm.package" => versions.push(value),
                "olm.csv.metadata" => csvs += 1,
                "olm.bundle.object" => {
                    objects += 1;
                    if !is_object(value, self.is_yaml) {
                        report.add(Rule::ObjectInvalid, place, &format!("properties[{at}]"));
                    }
                }
                _ => {}
            }
        }
        if csvs > 1 {
            report.add(Rule::CsvMetadataCount, place, &csvs.to_string());
        }
        let has_content = objects > 0 || !bundle.text("image").is_empty();
        report.require(has_content, Rule::BundleImageMissing, place);
        let [property] = versions.as_slice() else {
            report.add(
                Rule::PackagePropertyCount,
                place,
                &versions.len().to_string(),
            );
            return None;
        };
        check_version(&self.name, property, place, report)
    }
}

fn check_images(bundle: &Value<'_>, place: Place<'_>, report: &mut Report<'_>) {
    if let Some(reason) = image_error(bundle.text("image")) {
        report.add(Rule::BundleImageInvalid, place, &reason);
    }
    for related in bundle.list("relatedImages") {
        if let Some(reason) = image_error(related.text("image")) {
            report.add(Rule::RelatedImageInvalid, place, &reason);
        }
    }
}

fn image_error(image: &str) -> Option<String> {
    // Real catalogs have empty references, which OLM accepts.
    if image.is_empty() {
        return None;
    }
    let reason = reference_error(image)?;
    Some(format!("{}: {reason}", quoted(image)))
}

/// Returns true if `opm` can make JSON of the object. It takes everything with a brace in front for
/// JSON.
fn is_object(value: &Value<'_>, is_yaml: fn(&[u8]) -> bool) -> bool {
    let Value::Bytes(data) = value.field("data") else {
        return true;
    };
    let first = data.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|first| *first == b'{') || is_yaml(data)
}

/// Checks the property `olm.package`. Returns version and release as one text.
fn check_version(
    package: &str,
    property: &Value<'_>,
    place: Place<'_>,
    report: &mut Report<'_>,
) -> Option<String> {
    let named = property.text("packageName");
    let version = property.text("version");
    let release = property.text("release");
    if named != package {
        report.add(Rule::PackagePropertyDiffers, place, &quoted(named));
    }
    let is_version = parse_version(version).is_some();
    if !is_version {
        report.add(Rule::VersionInvalid, place, &quoted(version));
    }
    if release.is_empty() {
        return is_version.then(|| version.to_owned());
    }
    if !is_release(release) {
        report.add(Rule::ReleaseInvalid, place, &quoted(release));
        return None;
    }
    if version.contains('+') {
        report.add(Rule::ReleaseWithBuild, place, &quoted(version));
    }
    let full = format!("{version}-{release}");
    let expected = format!("{package}-v{full}");
    if is_version && place.bundle != expected {
        let detail = format!("must be {}", quoted(&expected));
        report.add(Rule::BundleNameInvalid, place, &detail);
    }
    is_version.then_some(full)
}
