use std::{fmt, path::Path, str, time::Duration};

use compose::{Composition, CompositionInput};
use model::{
    Availability, CatalogName, Current, INPUTS_MAX, ImageReference, Key, Sha256, text::chain,
};
use source::{Digest, Lookaside, Source};
use store::{ReadError, Store, StoreExt};
use trust::policy::Policy;

use crate::{SourceLimits, catalog_names};

/// Catalog as it is configured: name, source, schedule and policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// Name of the catalog, under which the store and the routes have it.
    pub name: CatalogName,
    /// Source that the FBC is read from, or composition.
    pub source: CatalogSource,
    /// Availability to readers, published with the next poll. Default: available.
    pub availability: Availability,
    /// Time between two polls. Without one, the catalog is polled once.
    pub interval: Option<Duration>,
    /// Policy for the signatures of its image. Without one, none is asked for. What a composition
    /// pulls has policies of its own.
    pub policy: Option<Policy>,
    /// Location of its simple signatures, if the policy asks for some.
    pub lookaside: Option<Lookaside>,
    /// Limits of its source, in place of those of the mirror. `memory_bytes` is not used: the
    /// mirror's is for all catalogs.
    pub limits: Option<SourceLimits>,
    /// Treatment of content that violates the rules of OLM. Default: it is published and the
    /// findings are named; a composition is refused.
    pub validation: ValidationMode,
}

impl Catalog {
    /// Returns an available catalog that is polled once, without a policy and with the limits of
    /// the mirror.
    pub fn new(name: CatalogName, source: impl Into<CatalogSource>) -> Self {
        let source = source.into();
        Self {
            name,
            // What is composed here can be corrected here; a foreign catalog cannot.
            validation: match source {
                CatalogSource::Pulled(_) => ValidationMode::Warn,
                CatalogSource::Composed(_) => ValidationMode::Refuse,
            },
            source,
            availability: Availability::Available,
            interval: None,
            policy: None,
            lookaside: None,
            limits: None,
        }
    }

    /// Returns the catalogs whose sources are pulled: this one, or what its composition pulls.
    pub fn pulled_mut(&mut self) -> Vec<&mut Self> {
        let composed = match self.source {
            CatalogSource::Pulled(_) => return vec![self],
            CatalogSource::Composed(ref mut composed) => composed,
        };
        let pulled = composed.inputs.iter_mut().filter_map(|input| match input {
            InputPlace::Published { .. } => None,
            InputPlace::Pulled(catalog) => Some(&mut **catalog),
        });
        pulled.collect()
    }

    /// Returns the time between two polls. A pinned digest never changes, so it has none.
    pub fn poll_interval(&self) -> Option<Duration> {
        self.interval.filter(|_| self.source.pinned().is_none())
    }
}

/// Treatment of content that violates the rules of OLM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ValidationMode {
    /// Publishes without a validation.
    Off,
    /// Publishes, and names the findings.
    #[default]
    Warn,
    /// Does not publish content with errors, unless a poll is forced. Warnings do not count.
    Refuse,
}

/// Text that is not a [`ValidationMode`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not off, warn or refuse")]
pub struct ValidationModeError(String);

impl str::FromStr for ValidationMode {
    type Err = ValidationModeError;

    fn from_str(text: &str) -> Result<Self, ValidationModeError> {
        match text {
            "off" => Ok(Self::Off),
            "warn" => Ok(Self::Warn),
            "refuse" => Ok(Self::Refuse),
            other => Err(ValidationModeError(model::text::line(other, 100))),
        }
    }
}

/// Number of hex digits of the hash by which the text of a composition changes with its content.
const HASH_DIGITS: usize = 12;

/// Content of a catalog: one source that is pulled, or a composition of other catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogSource {
    /// Image, layout or folder.
    Pulled(Source),
    /// Composition of published catalogs and of sources.
    Composed(Box<ComposedSource>),
}

/// Composition whose inputs and additions are parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedSource {
    /// Composition as it is configured.
    pub composition: Composition,
    /// Place of each input, then of each addition, in the order of the composition.
    pub inputs: Vec<InputPlace>,
}

/// Place of one input or addition of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPlace {
    /// Catalog in the store of the mirror.
    Published {
        /// Name of the catalog.
        name: CatalogName,
        /// State at which the composition stays. Default: the one that is published.
        pin: Option<Sha256>,
    },
    /// Source that is pulled for the composition alone, with the policy for its signatures. It has
    /// the name of the composed catalog.
    Pulled(Box<Catalog>),
}

/// Error in the inputs or additions of a composition.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ComposedSourceError(String);

impl CatalogSource {
    /// Returns the digest that the source is pinned to.
    pub fn pinned(&self) -> Option<&Digest> {
        self.pulled().and_then(Source::pinned)
    }

    /// Returns the source, if it is pulled.
    pub const fn pulled(&self) -> Option<&Source> {
        match self {
            Self::Pulled(source) => Some(source),
            Self::Composed(_) => None,
        }
    }

    /// Returns true if the catalog is pulled from this reference.
    pub fn is_at(&self, reference: &ImageReference) -> bool {
        let source = self
            .pulled()
            .map(|source| ImageReference::new(&source.to_string()));
        source.as_ref() == Some(reference)
    }

    /// Returns the composition, if it is one.
    pub const fn composed(&self) -> Option<&ComposedSource> {
        match self {
            Self::Pulled(_) => None,
            Self::Composed(composed) => Some(composed),
        }
    }

    /// Returns every source that is pulled for the catalog.
    pub fn pulled_sources(&self) -> impl Iterator<Item = &Source> {
        let inputs = self
            .composed()
            .into_iter()
            .flat_map(|composed| &composed.inputs);
        let inputs = inputs.filter_map(|input| match input {
            InputPlace::Published { .. } => None,
            InputPlace::Pulled(catalog) => catalog.source.pulled(),
        });
        self.pulled().into_iter().chain(inputs)
    }

    /// Returns the names of the published catalogs that a composition is made of.
    pub fn inputs(&self) -> impl Iterator<Item = &CatalogName> {
        let inputs = self
            .composed()
            .into_iter()
            .flat_map(|composed| &composed.inputs);
        inputs.filter_map(|input| match input {
            InputPlace::Published { name, .. } => Some(name),
            InputPlace::Pulled(_) => None,
        })
    }
}

impl ComposedSource {
    /// Parses the inputs and additions of a composition for the catalog `name`. Relative paths
    /// start at `folder`.
    ///
    /// # Errors
    /// The first input or addition that cannot be used.
    pub fn new(
        name: &CatalogName,
        composition: Composition,
        folder: &Path,
    ) -> Result<Self, ComposedSourceError> {
        let checked = composition.check();
        checked.map_err(|error| ComposedSourceError(chain(&error)))?;
        let count = composition.inputs.len();
        if count > INPUTS_MAX {
            let text = format!("there are {count} inputs; a composition has at most {INPUTS_MAX}");
            return Err(ComposedSourceError(text));
        }
        let pulled = |text: &str| match text.parse::<Source>() {
            Ok(source) => {
                let catalog = Catalog::new(name.clone(), source.relative_to(folder));
                Ok(InputPlace::Pulled(Box::new(catalog)))
            }
            Err(error) => Err(ComposedSourceError(format!("{text}: {}", chain(&error)))),
        };
        let inputs = composition.inputs.iter();
        let inputs = inputs.map(|input| match InputPlace::published(input)? {
            Some(published) => Ok(published),
            None => pulled(input.name()),
        });
        let additions = composition
            .add
            .iter()
            .map(|addition| pulled(&addition.source));
        let inputs = inputs.chain(additions).collect::<Result<_, _>>()?;
        Ok(Self {
            composition,
            inputs,
        })
    }

    /// Takes each input from the store, instead of pulling it once more, whose reference is that of
    /// a published catalog.
    pub fn share_sources(&mut self, published: impl Fn(&ImageReference) -> Option<CatalogName>) {
        for (input, place) in self.composition.inputs.iter().zip(&mut self.inputs) {
            let reference = input.catalog.as_deref().map(ImageReference::new);
            if let (InputPlace::Pulled(_), Some(reference)) = (&place, reference)
                && let Some(name) = published(&reference)
            {
                *place = InputPlace::Published { name, pin: None };
            }
        }
    }

    /// Takes inputs from the store that name the source of a published catalog, by its reference or
    /// by the digest that was pulled.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub async fn share_published(&mut self, store: &dyn Store) -> Result<(), ReadError> {
        let mut published = Vec::new();
        for name in catalog_names(store).await? {
            let key = Key::Current(name.clone());
            if let Some((current, _)) = store.read_document::<Current>(&key).await? {
                published.push((name, current.source));
            }
        }
        self.share_sources(|wanted| {
            let found = published.iter().find(|(_, source)| {
                let has = ImageReference::new(&source.reference);
                let is_same_content = wanted.digest.as_ref() == Some(&source.revision);
                has == *wanted || (has.name() == wanted.name() && is_same_content)
            });
            found.map(|(name, _)| name.clone())
        });
        Ok(())
    }
}

impl InputPlace {
    /// Returns the published catalog that an input names: `NAME` or `NAME@CONTENT-HASH`. A text
    /// with a slash is a source.
    fn published(input: &CompositionInput) -> Result<Option<Self>, ComposedSourceError> {
        let Some(text) = input
            .catalog
            .as_deref()
            .filter(|text| !text.contains(['/', ':']))
        else {
            return Ok(None);
        };
        let (name, hash) = match text.split_once('@') {
            Some((name, hash)) => (name, Some(hash)),
            None => (text, None),
        };
        let Ok(name) = name.parse() else {
            return Ok(None);
        };
        let pin = hash.map(str::parse).transpose();
        let pin = pin.map_err(|error| {
            let error = format!(
                "{text}: after the @ comes a content hash: {}",
                chain(&error)
            );
            ComposedSourceError(error)
        })?;
        Ok(Some(Self::Published { name, pin }))
    }
}

impl fmt::Display for CatalogSource {
    /// Writes a source as it is configured, and a composition as `compose:` with the names of its
    /// inputs and a hash, so that a changed composition has another text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pulled(source) => source.fmt(f),
            Self::Composed(composed) => {
                let names: Vec<&str> = composed
                    .composition
                    .inputs
                    .iter()
                    .map(CompositionInput::name)
                    .collect();
                let json = serde_json::to_vec(&composed.composition).map_err(|_| fmt::Error)?;
                let hash = Sha256::of(&json).to_string();
                write!(f, "compose:{}#{}", names.join(","), &hash[..HASH_DIGITS])
            }
        }
    }
}

impl From<Source> for CatalogSource {
    fn from(source: Source) -> Self {
        Self::Pulled(source)
    }
}
