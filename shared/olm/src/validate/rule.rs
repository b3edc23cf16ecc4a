use serde::{Serialize, Serializer};

/// Weight of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    /// `opm validate` and `opm serve` refuse the catalog.
    Error,
    /// `opm serve` refuses the catalog; `opm validate` accepts it.
    ServeError,
    /// A known weakness of real catalogs that neither refuses.
    Warning,
}

impl Severity {
    /// Returns the word for tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Declares the rules with their stable codes. The meaning of a rule is its documentation and its text for people.
macro_rules! rules {
    ($($severity:ident { $($name:ident $code:literal $meaning:literal)* })*) => {
        /// Rule of OLM that a catalog may break.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $($(
            #[doc = $meaning]
            $name,
        )*)* }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$($(Self::$name),*),*];

            /// Returns the stable code, such as `channel-cycle`.
            pub const fn code(self) -> &'static str {
                match self { $($(Self::$name => $code,)*)* }
            }

            /// Returns the text for people.
            pub const fn meaning(self) -> &'static str {
                match self { $($(Self::$name => $meaning,)*)* }
            }

            /// Returns the weight of a violation of this rule.
            pub const fn severity(self) -> Severity {
                match self { $($(Self::$name)|* => Severity::$severity,)* }
            }
        }
    };
}

// In the order in which the fields occur in the schemas. A code never changes: scripts compare it.
rules! {
    Error {
        NotFbc "not-fbc" "the file is not a file-based catalog"
        TooComplex "too-complex" "the document has too many values to be checked"
        SchemaMissing "schema-missing" "the document has no schema"
        FieldType "field-type" "a field has the wrong type"
        PackageNameMissing "package-name-missing" "the package has no name"
        PackageNameInvalid "package-name-invalid" "the name of the package is not a DNS label"
        PackageFieldDiffers "package-field-differs" "the field `package` of an olm.package is not its name"
        PackageDuplicate "package-duplicate" "the package is defined twice"
        PackageNoChannel "package-no-channel" "the package has no channel"
        DefaultChannelMissing "default-channel-missing" "the package has no default channel"
        DefaultChannelUnknown "default-channel-unknown" "the default channel is not a channel of the package"
        ChannelPackageUnknown "channel-package-unknown" "the package of the channel does not exist"
        ChannelNameMissing "channel-name-missing" "the channel has no name"
        ChannelDuplicate "channel-duplicate" "the package defines the channel twice"
        ChannelEmpty "channel-empty" "the channel has no entry"
        ChannelNoHead "channel-no-head" "the channel has no head: every entry is replaced or skipped"
        ChannelSeveralHeads "channel-several-heads" "the channel has several heads"
        ChannelCycle "channel-cycle" "the replaces chain of the channel is a cycle"
        ChannelStranded "channel-stranded" "no update leads from an entry to the head of the channel"
        EntryNameMissing "entry-name-missing" "an entry of the channel has no name"
        EntryDuplicate "entry-duplicate" "the channel has two entries of one name"
        EntryNoBundle "entry-no-bundle" "the entry has no bundle"
        EntrySkipEmpty "entry-skip-empty" "the entry skips an empty name"
        EntrySkipRangeInvalid "entry-skip-range-invalid" "the skipRange of the entry is not a version range"
        BundlePackageMissing "bundle-package-missing" "the bundle names no package"
        BundlePackageUnknown "bundle-package-unknown" "the package of the bundle does not exist"
        BundleDuplicate "bundle-duplicate" "the package has two bundles of one name"
        BundleNoChannel "bundle-no-channel" "the bundle is in no channel"
        BundleNameInvalid "bundle-name-invalid" "a bundle with a release is not named PACKAGE-vVERSION-RELEASE"
        BundleImageMissing "bundle-image-missing" "the bundle has neither an image nor objects"
        BundleImageInvalid "bundle-image-invalid" "the image of the bundle is not an image reference"
        RelatedImageInvalid "related-image-invalid" "a related image is not an image reference"
        PropertyInvalid "property-invalid" "the value of a property is missing or has the wrong type"
        PackagePropertyCount "package-property-count" "the bundle must have exactly one olm.package property"
        PackagePropertyDiffers "package-property-differs" "the olm.package property names another package"
        VersionInvalid "version-invalid" "the version of the bundle is not a semantic version"
        VersionDuplicate "version-duplicate" "two bundles of the package have one version"
        ReleaseInvalid "release-invalid" "the release of the bundle is invalid"
        ReleaseWithBuild "release-with-build" "the version has build metadata beside a release"
        ObjectInvalid "object-invalid" "an olm.bundle.object holds neither JSON nor YAML"
        DeprecationsPackageMissing "deprecations-package-missing" "the deprecations name no package"
        DeprecationsPackageUnknown "deprecations-package-unknown" "the package of the deprecations does not exist"
        DeprecationsDuplicate "deprecations-duplicate" "the package has two olm.deprecations"
        DeprecationSchemaMissing "deprecation-schema-missing" "a deprecation names no schema"
        DeprecationSchemaUnknown "deprecation-schema-unknown" "a deprecation names an unknown schema"
        DeprecationDuplicate "deprecation-duplicate" "two deprecations have one target"
        DeprecationTargetMissing "deprecation-target-missing" "the deprecated channel or bundle does not exist"
        DeprecationPackageNamed "deprecation-package-named" "the deprecation of a package must not have a name"
        DeprecationMessageMissing "deprecation-message-missing" "a deprecation has no message"
    }
    ServeError {
        CsvMetadataCount "csv-metadata-count" "the bundle has several olm.csv.metadata properties"
        SchemaNameInvalid "schema-name-invalid" "opm serve cannot use the schema or the package as a key"
    }
    Warning {
        IconInvalid "icon-invalid" "the icon is not an image of its media type"
        LifecycleInvalid "lifecycle-invalid" "the phases of support do not fit their schema"
        LifecycleDuplicate "lifecycle-duplicate" "the phases of support of a package or version are there twice"
        LifecycleDateInvalid "lifecycle-date-invalid" "a phase of support has a date that is none, or does not end after its start"
        LifecycleGap "lifecycle-gap" "a phase of support starts later than the day after the one before it"
        LifecycleOverlap "lifecycle-overlap" "a phase of support starts before the one before it has ended"
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}
