use serde::Serialize;

/// Weight of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::Display)]
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

/// Declares the rules. The meaning of a rule is its documentation and its text for people.
macro_rules! rules {
    ($($severity:ident { $($name:ident $meaning:literal)* })*) => {
        /// Rule of OLM that a catalog may break.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        pub enum Rule { $($(
            #[doc = $meaning]
            $name,
        )*)* }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$($(Self::$name),*),*];

            /// Returns the stable code, such as `channel-cycle`.
            pub fn code(self) -> &'static str {
                self.into()
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

// In the order in which the fields occur in the schemas. A name never changes: it is the code,
// which scripts compare.
rules! {
    Error {
        NotFbc "the file is not a file-based catalog"
        TooComplex "the document has too many values to be checked"
        SchemaMissing "the document has no schema"
        FieldType "a field has the wrong type"
        PackageNameMissing "the package has no name"
        PackageNameInvalid "the name of the package is not a DNS label"
        PackageFieldDiffers "the field `package` of an olm.package is not its name"
        PackageDuplicate "the package is defined twice"
        PackageNoChannel "the package has no channel"
        DefaultChannelMissing "the package has no default channel"
        DefaultChannelUnknown "the default channel is not a channel of the package"
        ChannelPackageUnknown "the package of the channel does not exist"
        ChannelNameMissing "the channel has no name"
        ChannelDuplicate "the package defines the channel twice"
        ChannelEmpty "the channel has no entry"
        ChannelNoHead "the channel has no head: every entry is replaced or skipped"
        ChannelSeveralHeads "the channel has several heads"
        ChannelCycle "the replaces chain of the channel is a cycle"
        ChannelStranded "no update leads from an entry to the head of the channel"
        EntryNameMissing "an entry of the channel has no name"
        EntryDuplicate "the channel has two entries of one name"
        EntryNoBundle "the entry has no bundle"
        EntrySkipEmpty "the entry skips an empty name"
        EntrySkipRangeInvalid "the skipRange of the entry is not a version range"
        BundlePackageMissing "the bundle names no package"
        BundlePackageUnknown "the package of the bundle does not exist"
        BundleDuplicate "the package has two bundles of one name"
        BundleNoChannel "the bundle is in no channel"
        BundleNameInvalid "a bundle with a release is not named PACKAGE-vVERSION-RELEASE"
        BundleImageMissing "the bundle has neither an image nor objects"
        BundleImageInvalid "the image of the bundle is not an image reference"
        RelatedImageInvalid "a related image is not an image reference"
        PropertyInvalid "the value of a property is missing or has the wrong type"
        PackagePropertyCount "the bundle must have exactly one olm.package property"
        PackagePropertyDiffers "the olm.package property names another package"
        VersionInvalid "the version of the bundle is not a semantic version"
        VersionDuplicate "two bundles of the package have one version"
        ReleaseInvalid "the release of the bundle is invalid"
        ReleaseWithBuild "the version has build metadata beside a release"
        ObjectInvalid "an olm.bundle.object holds neither JSON nor YAML"
        DeprecationsPackageMissing "the deprecations name no package"
        DeprecationsPackageUnknown "the package of the deprecations does not exist"
        DeprecationsDuplicate "the package has two olm.deprecations"
        DeprecationSchemaMissing "a deprecation names no schema"
        DeprecationSchemaUnknown "a deprecation names an unknown schema"
        DeprecationDuplicate "two deprecations have one target"
        DeprecationTargetMissing "the deprecated channel or bundle does not exist"
        DeprecationPackageNamed "the deprecation of a package must not have a name"
        DeprecationMessageMissing "a deprecation has no message"
    }
    ServeError {
        CsvMetadataCount "the bundle has several olm.csv.metadata properties"
        SchemaNameInvalid "opm serve cannot use the schema or the package as a key"
    }
    Warning {
        IconInvalid "the icon is not an image of its media type"
        LifecycleInvalid "the phases of support do not fit their schema"
        LifecycleDuplicate "the phases of support of a package or version are there twice"
        LifecycleDateInvalid "a phase of support has a date that is none, or does not end after its start"
        LifecycleGap "a phase of support starts later than the day after the one before it"
        LifecycleOverlap "a phase of support starts before the one before it has ended"
    }
}
