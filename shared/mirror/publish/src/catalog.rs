use std::borrow::Cow;
use std::{fmt, path::Path, str, time::Duration};

use compose::{Composition, CompositionInput};
use model::text::{chain, is_of_folder, without_folders};
use model::{Availability, CatalogName, Current, INPUTS_MAX, ImageReference, Key, Sha256};
use promotion::RingSource;
use source::{Digest, Lookaside, Source};
use store::{ReadError, Store, StoreExt};
use trust::policy::Policy;

use crate::{HoldSettings, SourceLimits, catalog_names};

/// Catalog as it is configured: name, source and schedule.
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
    /// Limits of its sources, in place of those of the mirror. `memory_bytes` is not used: the
    /// mirror's is for all catalogs.
    pub limits: Option<SourceLimits>,
    /// Treatment of content that violates the rules of OLM. Default: it is published and the
    /// findings are named; a composition is refused.
    pub validation: ValidationMode,
    /// Rules by which new content is held back. A forced poll has none.
    pub hold: HoldSettings,
}

impl Catalog {
    /// Returns an available catalog that is polled once, with the limits of the mirror.
    pub fn new(name: CatalogName, source: impl Into<CatalogSource>) -> Self {
        let source = source.into();
        Self {
            name,
            // What is composed here can be corrected here; a foreign catalog cannot.
            validation: match source {
                CatalogSource::Pulled(_) | CatalogSource::Ring(_) => ValidationMode::Warn,
                CatalogSource::Composed(_) => ValidationMode::Refuse,
            },
            source,
            availability: Availability::Available,
            interval: None,
            limits: None,
            hold: HoldSettings::default(),
        }
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

/// Content of a catalog: one source that is pulled, a composition of other catalogs, or the state of
/// another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogSource {
    /// Image, layout, archive, repository or folder.
    Pulled(Box<PulledSource>),
    /// Composition of published catalogs and of sources.
    Composed(Box<ComposedSource>),
    /// Published catalog that is followed with a delay.
    Ring(Box<RingSource>),
}

/// Source that is pulled, with the policy for the signatures of its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledSource {
    /// Place of the FBC.
    pub source: Source,
    /// Policy for the signatures. Default: none is asked for.
    pub policy: Option<Policy>,
    /// Location of simple signatures, if the policy asks for some.
    pub lookaside: Option<Lookaside>,
}

/// Composition whose inputs and additions are parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedSource {
    /// Composition as it is configured.
    pub composition: Composition,
    /// Inputs, then additions, in the order of the composition.
    pub inputs: Vec<ComposedInput>,
    /// Repository and tag for its image in the registry of a site, if an ImageSetConfiguration
    /// names them.
    pub target: Option<String>,
}

/// One input or addition of a composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedInput {
    /// Part of it in the composition.
    pub role: InputRole,
    /// Text by which the composition calls it.
    pub name: String,
    /// Reference of the catalog that it names; `None` for what is always pulled.
    pub reference: Option<ImageReference>,
    /// Place of its content.
    pub place: InputPlace,
}

/// Part of a [`ComposedInput`] in the composition. Its text is the field of the composition, as
/// errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRole {
    /// Catalog to take packages from.
    Input,
    /// Documents that are added to the inputs.
    Addition,
}

/// Place of the content of a [`ComposedInput`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPlace {
    /// Catalog in the store of the mirror.
    Published {
        /// Name of the catalog.
        name: CatalogName,
        /// State at which the composition stays. Default: the one that is published.
        pin: Option<Sha256>,
    },
    /// Source that is pulled for the composition alone.
    Pulled(Box<PulledSource>),
}

/// Error in the inputs or additions of a composition.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ComposedSourceError(String);

impl CatalogSource {
    /// Returns the digest that the source is pinned to.
    pub fn pinned(&self) -> Option<&Digest> {
        self.pulled()?.source.pinned()
    }

    /// Returns the source, if it is pulled.
    pub const fn pulled(&self) -> Option<&PulledSource> {
        match self {
            Self::Pulled(pulled) => Some(pulled),
            Self::Composed(_) | Self::Ring(_) => None,
        }
    }

    /// Returns true if the catalog is pulled from this reference.
    pub fn is_at(&self, reference: &ImageReference) -> bool {
        self.pulled()
            .is_some_and(|pulled| ImageReference::new(&pulled.source.to_string()) == *reference)
    }

    /// Returns the composition, if it is one.
    pub const fn composed(&self) -> Option<&ComposedSource> {
        match self {
            Self::Composed(composed) => Some(composed),
            Self::Pulled(_) | Self::Ring(_) => None,
        }
    }

    /// Returns the ring, if it is one.
    pub const fn ring(&self) -> Option<&RingSource> {
        match self {
            Self::Ring(ring) => Some(ring),
            Self::Pulled(_) | Self::Composed(_) => None,
        }
    }

    /// Returns every source that is pulled for the catalog.
    pub fn pulled_sources(&self) -> Vec<&PulledSource> {
        match self {
            Self::Pulled(pulled) => vec![pulled],
            Self::Composed(composed) => composed
                .inputs
                .iter()
                .filter_map(|input| match &input.place {
                    InputPlace::Published { .. } => None,
                    InputPlace::Pulled(pulled) => Some(pulled.as_ref()),
                })
                .collect(),
            Self::Ring(_) => Vec::new(),
        }
    }

    /// Returns every source that is pulled for the catalog, to set its policy.
    pub fn pulled_sources_mut(&mut self) -> Vec<&mut PulledSource> {
        match self {
            Self::Pulled(pulled) => vec![pulled],
            Self::Composed(composed) => composed
                .inputs
                .iter_mut()
                .filter_map(|input| match &mut input.place {
                    InputPlace::Published { .. } => None,
                    InputPlace::Pulled(pulled) => Some(pulled.as_mut()),
                })
                .collect(),
            Self::Ring(_) => Vec::new(),
        }
    }

    /// Returns the text of the source for readers of the mirror: folders of this machine are named by
    /// their last part.
    pub fn shown(&self) -> String {
        self.text(without_folders)
    }

    /// Returns a text about the catalog, such as an error, for readers of the mirror.
    pub(crate) fn shown_text(&self, text: &str) -> String {
        let pulled: Vec<&Source> = match self {
            Self::Pulled(pulled) => vec![&pulled.source],
            Self::Composed(composed) => composed.pulled().collect(),
            Self::Ring(_) => Vec::new(),
        };
        let mut shown = text.to_owned();
        for path in pulled.into_iter().filter_map(Source::local_path) {
            // In the root there is no folder to hide.
            let has_folders = path.components().count() > 2;
            if let Some(name) = path.file_name().filter(|_| has_folders) {
                shown = shown.replace(&*path.to_string_lossy(), &name.to_string_lossy());
            }
        }
        shown
    }

    /// Returns the text of the source, in which each source or input is shown by `shown`.
    fn text(&self, shown: impl Fn(&str) -> Cow<'_, str>) -> String {
        let composed = match self {
            Self::Pulled(pulled) => return shown(&pulled.source.to_string()).into_owned(),
            Self::Ring(ring) => return ring.to_string(),
            Self::Composed(composed) => composed,
        };
        let inputs = &composed.composition.inputs;
        let names: Vec<_> = inputs.iter().map(|input| shown(input.name())).collect();
        let json = serde_json::to_vec(&composed.composition);
        let json = json.expect("a composition has texts and lists only");
        let hash = Sha256::of(&json).to_string();
        format!("compose:{}#{}", names.join(","), &hash[..HASH_DIGITS])
    }

    /// Returns the names of the published catalogs that a composition is made of, or the one that a
    /// ring follows.
    pub fn inputs(&self) -> impl Iterator<Item = &CatalogName> {
        let inputs = self
            .composed()
            .into_iter()
            .flat_map(|composed| &composed.inputs);
        let inputs = inputs.filter_map(|input| match &input.place {
            InputPlace::Published { name, .. } => Some(name),
            InputPlace::Pulled(_) => None,
        });
        inputs.chain(self.ring().map(|ring| &ring.of))
    }
}

impl ComposedInput {
    /// Returns the text by which errors name it, such as `add dir:team`.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.role, self.name)
    }
}

impl ComposedSource {
    /// Returns the sources that are pulled for it.
    fn pulled(&self) -> impl Iterator<Item = &Source> {
        self.inputs.iter().filter_map(|input| match &input.place {
            InputPlace::Published { .. } => None,
            InputPlace::Pulled(pulled) => Some(&pulled.source),
        })
    }

    /// Parses the inputs and additions of a composition. Relative paths start at `folder`.
    ///
    /// # Errors
    /// The first input or addition that cannot be used.
    pub fn new(composition: Composition, folder: &Path) -> Result<Self, ComposedSourceError> {
        composition
            .check()
            .map_err(|error| ComposedSourceError(chain(&error)))?;
        let count = composition.inputs.len();
        if count > INPUTS_MAX {
            let text = format!("there are {count} inputs; a composition has at most {INPUTS_MAX}");
            return Err(ComposedSourceError(text));
        }
        let mut inputs = Vec::new();
        for input in &composition.inputs {
            let name = input.name();
            let place = match InputPlace::published(input)? {
                Some(published) => published,
                None => InputPlace::pulled(name, folder)?,
            };
            inputs.push(ComposedInput {
                role: InputRole::Input,
                name: name.to_owned(),
                reference: input.catalog.as_deref().map(ImageReference::new),
                place,
            });
        }
        for addition in &composition.add {
            inputs.push(ComposedInput {
                role: InputRole::Addition,
                name: addition.source.clone(),
                reference: None,
                place: InputPlace::pulled(&addition.source, folder)?,
            });
        }
        Ok(Self {
            composition,
            inputs,
            target: None,
        })
    }

    /// Takes each input from the store, instead of pulling it once more, whose reference is that of
    /// a published catalog.
    pub fn share_sources(&mut self, published: impl Fn(&ImageReference) -> Option<CatalogName>) {
        for input in &mut self.inputs {
            if let (InputPlace::Pulled(_), Some(reference)) = (&input.place, &input.reference)
                && let Some(name) = published(reference)
            {
                input.place = InputPlace::Published { name, pin: None };
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
            let Some((current, _)) = store.read_document::<Current>(&key).await? else {
                continue;
            };
            // Two folders may have one name.
            if !is_of_folder(&current.source.reference) {
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

    /// Parses a source that is pulled.
    fn pulled(text: &str, folder: &Path) -> Result<Self, ComposedSourceError> {
        match text.parse::<Source>() {
            Ok(source) => Ok(Self::Pulled(Box::new(source.relative_to(folder).into()))),
            Err(error) => Err(ComposedSourceError(format!("{text}: {}", chain(&error)))),
        }
    }
}

impl fmt::Display for InputRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Addition => "add",
        })
    }
}

/// Number of hex digits of the hash by which the text of a composition changes with its content.
const HASH_DIGITS: usize = 12;

impl fmt::Display for CatalogSource {
    /// Writes a source and a ring as they are configured, and a composition as `compose:` with the names of its
    /// inputs and a hash, so that a changed composition has another text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(|text| text.into()))
    }
}

impl From<Source> for PulledSource {
    /// Returns the source without a policy.
    fn from(source: Source) -> Self {
        Self {
            source,
            policy: None,
            lookaside: None,
        }
    }
}

impl From<Source> for CatalogSource {
    /// Returns the source without a policy.
    fn from(source: Source) -> Self {
        Self::Pulled(Box::new(source.into()))
    }
}
