//! Execution of a query. The library parses it, validates it, resolves variables and describes the types. The fields of the
//! root are made here, each at once with all values below: a future for each of 10,000 values would take longer than their
//! JSON, and a list of the library cannot hold null.

use std::{
    collections::HashMap,
    future::poll_fn,
    ptr,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use async_graphql::{
    Name, PathSegment, Request, Response, ServerError, ServerResult, Value,
    dynamic::{FieldFuture, FieldValue, ResolverContext},
    extensions::{Extension, ExtensionContext, ExtensionFactory, NextResolve, ResolveInfo},
    indexmap::IndexMap,
    parser::types::{ExecutableDocument, Field, Selection, SelectionSet},
};
use bytes::Bytes;
use futures_util::{TryStreamExt, lock::Mutex as AsyncMutex};
use serde::Serialize;

use crate::{
    budget::{AnswerBudget, too_large},
    data::{CatalogData, MetaPage},
    error::DataError,
    limits::{self, QueryLimits},
    objects::{MetaReader, ValueWalk, object},
    plan::SelectionPlan,
    request::GraphQlRequest,
    types::{CatalogTypes, MetaList, Roots, SUMMARY},
};

/// Maximum number of Metas in one list, and the number without `limit`, as in catalogd.
const PAGE_MAX: u64 = 100;

/// Maximum number of errors in an answer.
const ERRORS_MAX: usize = 100;

/// Form of an answer without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// `"data":null`, as catalogd sends it.
    NullData,
    /// No `data`, as the specification has it for a request that was not executed.
    NoData,
}

impl CatalogTypes {
    /// Answers a request with JSON. Errors of the query are in it. An equal request has equal bytes.
    ///
    /// # Errors
    /// The failure of `data`.
    pub async fn answer(
        &self,
        request: &GraphQlRequest,
        data: Arc<dyn CatalogData>,
        limits: QueryLimits,
        form: AnswerForm,
    ) -> Result<Bytes, DataError> {
        let parsed = limits::parse(&request.query, self.cost).and_then(|document| Ok((document, request.variables()?)));
        let (document, variables) = match parsed {
            Ok(parsed) => parsed,
            Err(message) => return Ok(refusal(message, form)),
        };
        let state = Arc::new(ExecutionState {
            roots: Arc::clone(&self.roots),
            data,
            budget: AnswerBudget::new(limits.answer),
            made: Mutex::default(),
            failure: Mutex::default(),
            turn: AsyncMutex::default(),
        });
        let keys = root_keys(&document, request.operation.as_deref());
        let mut library = Request::new("").variables(variables);
        library.operation_name.clone_from(&request.operation);
        library.set_parsed_query(document);
        let response = self.schema.execute(library.data(Arc::clone(&state))).await;
        if let Some(failure) = locked(&state.failure).take() {
            return Err(failure);
        }
        Ok(serialized(response, &keys, limits, form))
    }
}

/// Returns true for an answer of [`AnswerForm::NoData`] to a request that was not executed.
pub fn is_refusal(answer: &[u8]) -> bool {
    answer.starts_with(b"{\"errors\"")
}

/// State of one execution.
struct ExecutionState {
    roots: Arc<Roots>,
    data: Arc<dyn CatalogData>,
    budget: AnswerBudget,
    /// Values of fields of the root, by the address of the field in the query. A fragment that is spread twice has the field
    /// twice.
    made: Mutex<HashMap<usize, Vec<Value>>>,
    failure: Mutex<Option<DataError>>,
    /// Held while a list is read, so that only one line is in memory at a time.
    turn: AsyncMutex<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts the values that [`resolve_root`] made in the place of those of the library.
pub(crate) struct ResolvedFields;

impl ExtensionFactory for ResolvedFields {
    fn create(&self) -> Arc<dyn Extension> {
        Arc::new(Self)
    }
}

#[async_trait::async_trait]
impl Extension for ResolvedFields {
    async fn resolve(
        &self,
        ctx: &ExtensionContext<'_>,
        info: ResolveInfo<'_>,
        next: NextResolve<'_>,
    ) -> ServerResult<Option<Value>> {
        if info.is_for_introspection {
            return next.run(ctx, info).await;
        }
        let address = address(info.field);
        let value = next.run(ctx, info).await?;
        let state = ctx.data_opt::<Arc<ExecutionState>>();
        let made = state.and_then(|state| locked(&state.made).get_mut(&address)?.pop());
        Ok(made.or(value))
    }
}

fn address(field: &Field) -> usize {
    ptr::from_ref(field).addr()
}

/// Resolves a field of the root: its value is left in the state, and the library gets nothing. An error makes it null.
pub(crate) fn resolve_root(ctx: ResolverContext<'_>) -> FieldFuture<'_> {
    FieldFuture::new(async move {
        let state = ctx.data::<Arc<ExecutionState>>()?;
        let made = match ctx.field().name() {
            SUMMARY => state.summary(&ctx),
            _ => state.list(&ctx).await,
        };
        let value = made.unwrap_or_else(|message| {
            ctx.add_error(error_at(&ctx, message, vec![PathSegment::Field(key(&ctx).to_owned())]));
            Value::Null
        });
        locked(&state.made)
            .entry(address(&ctx.item.node))
            .or_default()
            .push(value);
        Ok(FieldValue::NONE)
    })
}

fn key<'a>(ctx: &'a ResolverContext<'_>) -> &'a str {
    let field = ctx.field();
    field.alias().unwrap_or(field.name())
}

fn error_at(ctx: &ResolverContext<'_>, message: String, path: Vec<PathSegment>) -> ServerError {
    ServerError {
        path,
        ..ServerError::new(message, Some(ctx.item.pos))
    }
}

impl ExecutionState {
    fn summary(&self, ctx: &ResolverContext<'_>) -> Result<Value, String> {
        let mut lists: Vec<&MetaList> = self.roots.lists.values().collect();
        lists.sort_by(|a, b| a.schema.cmp(&b.schema));
        let schemas = lists.iter().map(|list| {
            let (total, fields) = (self.data.total(&list.schema), list.shape.fields.len());
            serde_json::json!({ "name": list.schema, "totalObjects": total, "totalFields": fields })
        });
        let schemas: Vec<serde_json::Value> = schemas.collect();
        let line = serde_json::json!({ "totalSchemas": schemas.len(), "schemas": schemas }).to_string();
        let mut plan = SelectionPlan::new(&[ctx.field()], &self.roots.summary);
        let mut walk = ValueWalk::new(&self.budget, key(ctx));
        object(&line, &mut plan, &mut walk).map_err(|error| self.unreadable(error.into()))
    }

    async fn list(&self, ctx: &ResolverContext<'_>) -> Result<Value, String> {
        let name = ctx.field().name();
        let list = self
            .roots
            .lists
            .get(name)
            .ok_or_else(|| format!("unknown field {name}"))?;
        let page = page(ctx, &list.schema);
        let plan = SelectionPlan::new(&[ctx.field()], &list.shape);
        let mut reader = MetaReader::new(plan, ValueWalk::new(&self.budget, key(ctx)));
        let _turn = self.turn.lock().await;
        let lines = self.data.lines(&page).await;
        let mut lines = lines.map_err(|failure| self.unreadable(failure))?;
        while let Some(chunk) = lines.try_next().await.map_err(|failure| self.unreadable(failure))? {
            reader.push(&chunk).map_err(|error| self.unreadable(error.into()))?;
            pause().await;
        }
        let (value, faults) = reader.finish();
        for path in faults {
            ctx.add_error(error_at(ctx, "the value is no list".to_owned(), path));
        }
        Ok(value)
    }

    /// Returns the message about a list that cannot be read. A failure of the data is kept: the request fails with it.
    fn unreadable(&self, failure: DataError) -> String {
        if self.budget.is_exceeded() {
            return self.budget.message();
        }
        locked(&self.failure).get_or_insert(failure);
        "the catalog cannot be read".to_owned()
    }
}

/// Lets the caller see between two chunks that the time is over: reading from memory never waits.
async fn pause() {
    let mut is_first = true;
    poll_fn(|context| {
        if std::mem::replace(&mut is_first, false) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

fn page(ctx: &ResolverContext<'_>, schema: &str) -> MetaPage {
    let number = |name: &str| ctx.args.get(name).and_then(|value| value.i64().ok());
    let text = |name: &str| {
        let value = ctx.args.get(name).and_then(|value| value.string().ok());
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    };
    let limit = number("limit").and_then(|limit| u64::try_from(limit).ok());
    MetaPage {
        schema: schema.to_owned(),
        package: text("package"),
        name: text("name"),
        offset: number("offset").map_or(0, |offset| u64::try_from(offset).unwrap_or_default()),
        limit: limit.filter(|limit| (1..=PAGE_MAX).contains(limit)).unwrap_or(PAGE_MAX),
    }
}

/// Returns the keys of the root in the order of the query. Fields are resolved in any order.
fn root_keys(document: &ExecutableDocument, operation: Option<&str>) -> Vec<Name> {
    let is_chosen = |name: Option<&Name>| operation.is_none_or(|operation| name.is_some_and(|name| name == operation));
    let chosen = document.operations.iter().find(|(name, _)| is_chosen(*name));
    let mut keys = Vec::new();
    if let Some((_, operation)) = chosen {
        add_keys(document, &operation.node.selection_set.node, &mut keys);
    }
    keys
}

fn add_keys(document: &ExecutableDocument, set: &SelectionSet, keys: &mut Vec<Name>) {
    for selection in &set.items {
        match &selection.node {
            Selection::Field(field) => keys.push(field.node.response_key().node.clone()),
            Selection::InlineFragment(inline) => add_keys(document, &inline.node.selection_set.node, keys),
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) {
                    add_keys(document, &fragment.node.selection_set.node, keys);
                }
            }
        }
    }
}

fn ordered(data: Value, keys: &[Name]) -> Value {
    let Value::Object(mut fields) = data else {
        return data;
    };
    let mut ordered = IndexMap::with_capacity(fields.len());
    for key in keys {
        if let Some(value) = fields.swap_remove(key) {
            ordered.insert(key.clone(), value);
        }
    }
    Value::Object(ordered)
}

fn serialized(mut response: Response, keys: &[Name], limits: QueryLimits, form: AnswerForm) -> Bytes {
    response.errors.sort_by_cached_key(|error| {
        let place = error.locations.first().map(|place| (place.line, place.column));
        (place, format!("{:?}", error.path), error.message.clone())
    });
    response.errors.truncate(ERRORS_MAX);
    if response.data == Value::Null {
        if !response.errors.is_empty() {
            return refused(&response.errors, form);
        }
        // All fields are skipped.
        response.data = Value::Object(IndexMap::new());
    }
    response.data = ordered(response.data, keys);
    let answer = json(&response);
    match answer.len() as u64 <= limits.answer {
        true => answer,
        false => refusal(too_large(limits.answer), form),
    }
}

fn refusal(message: String, form: AnswerForm) -> Bytes {
    refused(&[ServerError::new(message, None)], form)
}

fn refused(errors: &[ServerError], form: AnswerForm) -> Bytes {
    json(&Refusal {
        data: (form == AnswerForm::NullData).then_some(()),
        errors,
    })
}

/// Answer to a request that was not executed.
#[derive(Serialize)]
struct Refusal<'a> {
    /// `Some(())` is null.
    #[serde(serialize_with = "null", skip_serializing_if = "Option::is_none")]
    data: Option<()>,
    errors: &'a [ServerError],
}

fn null<S: serde::Serializer>(_: &Option<()>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_unit()
}

fn json(value: &impl Serialize) -> Bytes {
    let mut bytes = serde_json::to_vec(value).expect("an answer has only values of JSON");
    bytes.push(b'\n');
    // It may be kept: half of its memory could be unused.
    bytes.shrink_to_fit();
    bytes.into()
}
