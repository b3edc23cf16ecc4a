//! Types of a catalog, as GraphQL knows them.

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_graphql::{
    Value,
    dynamic::{Field, FieldFuture, InputValue, Object, Schema, SchemaBuilder, TypeRef},
};
use model::{FieldType, SchemaFields, ValueType};
use olm::{query_field, type_name};

use crate::{
    error::TypesError,
    execute::{ResolvedFields, resolve_root},
    introspection::IntrospectionCost,
};

/// Version of the rules by which queries are answered. An answer for an unchanged catalog changes only with it, so an update of
/// the library increases it if a message has changed.
pub const GRAPHQL_VERSION: u32 = 1;

/// Maximum number of schemas. Real catalogs have at most ten.
const SCHEMAS_MAX: usize = 1_000;

/// Maximum number of fields of all types: a hundred times those of real catalogs. Each takes about a kilobyte.
const TYPE_FIELDS_MAX: usize = 10_000;

/// Estimated memory of a field or type, in bytes.
const FIELD_WEIGHT: u64 = 1 << 10;

/// Field of the root type that counts the Metas.
pub(crate) const SUMMARY: &str = "summary";

/// Types of the Metas of a catalog. They depend on the fields of its Metas only.
pub struct CatalogTypes {
    pub(crate) schema: Schema,
    pub(crate) roots: Arc<Roots>,
    pub(crate) cost: IntrospectionCost,
}

/// Fields of the root type with all types below them.
#[derive(Debug)]
pub(crate) struct Roots {
    /// Lists of Metas, by the names of their fields.
    pub(crate) lists: BTreeMap<String, MetaList>,
    /// Type of the summary.
    pub(crate) summary: ObjectShape,
}

/// A field of the root type that lists Metas.
#[derive(Debug)]
pub(crate) struct MetaList {
    pub(crate) schema: String,
    pub(crate) shape: ObjectShape,
}

/// Fields of an object.
#[derive(Debug)]
pub(crate) struct ObjectShape {
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, FieldShape>,
}

/// Type of a field.
#[derive(Debug)]
pub(crate) enum FieldShape {
    Scalar(ValueType),
    Scalars(ValueType),
    Objects(ObjectShape),
}

impl CatalogTypes {
    /// Makes the types for the fields of a catalog, by schema.
    ///
    /// # Errors
    /// [`TypesError`], as catalogd has none for such a catalog either, or if there are too many.
    pub fn new(fields: &BTreeMap<&str, SchemaFields>) -> Result<Self, TypesError> {
        check_counts(fields)?;
        let roots = Roots {
            lists: meta_lists(fields)?,
            summary: summary(),
        };
        let (types, cost) = register(&roots)?;
        let schema = types
            .disable_suggestions()
            .extension(ResolvedFields)
            .finish()
            .map_err(|error| TypesError::Invalid(error.to_string()))?;
        Ok(Self {
            schema,
            roots: Arc::new(roots),
            cost,
        })
    }

    /// Returns the memory that the types take, in bytes.
    pub fn weight(&self) -> u64 {
        // Twice: types of the library beside ours.
        2 * FIELD_WEIGHT * (self.cost.all_fields + self.cost.types)
    }
}

impl fmt::Debug for CatalogTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogTypes").field("cost", &self.cost).finish()
    }
}

fn check_counts(fields: &BTreeMap<&str, SchemaFields>) -> Result<(), TypesError> {
    let of_schema = |schema: &SchemaFields| {
        schema
            .fields
            .values()
            .map(|field| 1 + field.fields.len())
            .sum::<usize>()
    };
    let counts = [
        ("schemas", fields.len(), SCHEMAS_MAX),
        ("fields", fields.values().map(of_schema).sum(), TYPE_FIELDS_MAX),
    ];
    for (of, found, most) in counts {
        if found > most {
            return Err(TypesError::TooMany { of, found, most });
        }
    }
    Ok(())
}

fn meta_lists(fields: &BTreeMap<&str, SchemaFields>) -> Result<BTreeMap<String, MetaList>, TypesError> {
    let mut lists: BTreeMap<String, MetaList> = BTreeMap::new();
    // catalogd leaves out Metas without a schema too.
    for (&schema, fields) in fields.iter().filter(|(schema, _)| !schema.is_empty()) {
        let owner = format!("schema {schema:?}");
        let name = query_field(schema);
        check_name(&owner, &name)?;
        let known = lists.get(&name).map(|list| format!("schema {:?}", list.schema));
        if let Some(first) = known.or_else(|| (name == SUMMARY).then(|| "the summary".to_owned())) {
            return Err(TypesError::QueryField {
                first,
                second: owner,
                name,
            });
        }
        let list = MetaList {
            schema: schema.to_owned(),
            shape: object(type_name(schema), &owner, &fields.fields)?,
        };
        lists.insert(name, list);
    }
    Ok(lists)
}

fn object(name: String, owner: &str, fields: &BTreeMap<String, FieldType>) -> Result<ObjectShape, TypesError> {
    let shapes = fields.iter().map(|(field, of)| {
        let owner = format!("field {field:?} of {owner}");
        check_name(&owner, field)?;
        let shape = match (of.fields.is_empty(), of.list) {
            (true, false) => FieldShape::Scalar(of.value),
            (true, true) => FieldShape::Scalars(of.value),
            (false, _) => FieldShape::Objects(object(format!("{name}{}", type_name(field)), &owner, &of.fields)?),
        };
        Ok((field.clone(), shape))
    });
    Ok(ObjectShape {
        fields: shapes.collect::<Result<_, _>>()?,
        name,
    })
}

fn check_name(owner: &str, name: &str) -> Result<(), TypesError> {
    let is_first = |first: char| first.is_ascii_alphabetic() || first == '_';
    let is_name = name.starts_with(is_first)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        // These are for introspection.
        && !name.starts_with("__");
    is_name.then_some(()).ok_or_else(|| TypesError::Name {
        owner: owner.to_owned(),
        name: name.to_owned(),
    })
}

fn summary() -> ObjectShape {
    let of = |name: &str, fields: Vec<(&str, FieldShape)>| ObjectShape {
        name: name.to_owned(),
        fields: fields
            .into_iter()
            .map(|(name, shape)| (name.to_owned(), shape))
            .collect(),
    };
    let schemas = vec![
        ("name", FieldShape::Scalar(ValueType::String)),
        ("totalObjects", FieldShape::Scalar(ValueType::Int)),
        ("totalFields", FieldShape::Scalar(ValueType::Int)),
    ];
    let summary = vec![
        ("totalSchemas", FieldShape::Scalar(ValueType::Int)),
        ("schemas", FieldShape::Objects(of("SchemaSummary", schemas))),
    ];
    of("CatalogSummary", summary)
}

/// Collects all types for the library. Each name may belong to one of them.
struct Registration {
    builder: Option<SchemaBuilder>,
    owners: BTreeMap<String, String>,
    cost: IntrospectionCost,
}

const ROOT: &str = "Query";

fn register(roots: &Roots) -> Result<(SchemaBuilder, IntrospectionCost), TypesError> {
    let own = ["Query", "String", "Int", "Float", "Boolean", "ID"];
    let mut types = Registration {
        builder: Some(Schema::build(ROOT, None, None)),
        owners: own
            .into_iter()
            .map(|name| (name.to_owned(), format!("GraphQL's own {name}")))
            .collect(),
        cost: IntrospectionCost {
            // Those of introspection itself have 60 fields; the rest are the scalars.
            types: 20,
            all_fields: 80,
            most_fields: 15,
        },
    };
    let summary = Field::new(SUMMARY, TypeRef::named(&roots.summary.name), resolve_root);
    let mut query = Object::new(ROOT).field(summary.description("Numbers of the Metas of the catalog"));
    types.add(&roots.summary, "the summary")?;
    for (field, list) in &roots.lists {
        types.add(&list.shape, &format!("schema {:?}", list.schema))?;
        query = query.field(list_field(field, list));
    }
    types.count(roots.lists.len() + 1);
    let builder = types.builder.take().map(|builder| builder.register(query));
    Ok((builder.expect("each step puts it back"), types.cost))
}

impl Registration {
    fn add(&mut self, shape: &ObjectShape, owner: &str) -> Result<(), TypesError> {
        check_name(owner, &shape.name)?;
        if let Some(first) = self.owners.insert(shape.name.clone(), owner.to_owned()) {
            return Err(TypesError::TypeName {
                first,
                second: owner.to_owned(),
                name: shape.name.clone(),
            });
        }
        let mut object = Object::new(&shape.name);
        for (name, field) in &shape.fields {
            if let FieldShape::Objects(inner) = field {
                self.add(inner, &format!("field {name:?} of {owner}"))?;
            }
            // It is never resolved: the list above it is made at once.
            object = object.field(Field::new(name, field.type_ref(), |_| FieldFuture::Value(None)));
        }
        self.count(shape.fields.len());
        self.builder = self.builder.take().map(|builder| builder.register(object));
        Ok(())
    }

    fn count(&mut self, fields: usize) {
        let fields = fields as u64;
        self.cost.types += 1;
        self.cost.all_fields += fields;
        self.cost.most_fields = self.cost.most_fields.max(fields);
    }
}

fn list_field(name: &str, list: &MetaList) -> Field {
    let text = TypeRef::named(TypeRef::STRING);
    let number = |name: &str, default: i32, description: &str| {
        InputValue::new(name, TypeRef::named(TypeRef::INT))
            .default_value(Value::from(default))
            .description(description)
    };
    Field::new(name, TypeRef::named_list(&list.shape.name), resolve_root)
        .description(format!(
            "Metas of the schema {}, in the order of the catalog",
            list.schema
        ))
        .argument(number("limit", 100, "Maximum number of Metas, at most 100"))
        .argument(number("offset", 0, "Number of Metas to leave out"))
        .argument(InputValue::new("package", text.clone()).description("Only Metas of this package"))
        .argument(InputValue::new("name", text).description("Only Metas of this name"))
}

impl FieldShape {
    fn type_ref(&self) -> TypeRef {
        match self {
            Self::Scalar(of) => TypeRef::named(scalar_name(*of)),
            Self::Scalars(of) => TypeRef::named_list(scalar_name(*of)),
            Self::Objects(shape) => TypeRef::named_list(&shape.name),
        }
    }
}

const fn scalar_name(of: ValueType) -> &'static str {
    match of {
        ValueType::String => TypeRef::STRING,
        ValueType::Boolean => TypeRef::BOOLEAN,
        ValueType::Int => TypeRef::INT,
        ValueType::Float => TypeRef::FLOAT,
    }
}
