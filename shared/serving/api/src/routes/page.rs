//! The page for people: an HTML document, its script and its style, which read the documents of the
//! other routes.

use std::{future::ready, sync::LazyLock};

use bytes::Bytes;
use http::{HeaderValue, header};
use model::{CachePolicy, Encoding, Facts, SearchPackage, Sha256, StoredDocument};
use olm::SEARCH;

use crate::call::RouteCall;
use crate::error::ApiError;
use crate::payload::Payload;
use crate::representation::Representation;
use crate::rfc9110::Tag;

const HTML: &str = include_str!("../../page/page.html");

/// Title of the page where the settings name none.
const TITLE: &str = "Operator catalogs";

/// Policy of the page (W3C Content Security Policy 3, Trusted Types): its own files, icons in
/// `data:` URLs, no HTML from text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Files that the HTML names, which changes with them: the script, the rules that it imports, and
/// the style.
static FILES: LazyLock<[PageFile; 3]> = LazyLock::new(|| {
    let rules = without_comments(include_str!("../../page/rules.js"));
    let rules = PageFile::new(rules, "js", "text/javascript; charset=utf-8");
    // Both lie in one folder.
    let name = rules.path.replace("page/", "./");
    let script = without_comments(include_str!("../../page/page.js"));
    let script = script.replace("./rules.js", &name);
    let style = without_spaces(&without_comments(include_str!("../../page/page.css")));
    [
        PageFile::new(script, "js", "text/javascript; charset=utf-8"),
        rules,
        PageFile::new(style, "css", "text/css; charset=utf-8"),
    ]
});

/// Returns a script or a style without comments, empty lines and indentation: a tenth of what each
/// new browser takes. No text of them goes over several lines, or has a comment's signs after the
/// end of a statement.
fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let lines = text.lines().map(str::trim_start);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let ends = ["; // ", ", // ", "{ // "];
        let end = ends.iter().filter_map(|end| line.find(end)).min();
        code += end.map_or(line, |end| &line[..=end]);
        code.push('\n');
    }
    code
}

/// Returns a style without spaces that mean nothing. None of its texts has them.
fn without_spaces(style: &str) -> String {
    let mut short = style.to_owned();
    for sign in [" { ", " {", "; ", " }", ": ", ", "] {
        short = short.replace(sign, sign.trim());
    }
    short
}

/// The HTML with the names of the files.
static PAGE: LazyLock<PageFile> = LazyLock::new(|| {
    let [script, rules, style] = &*FILES;
    let html = HTML
        .replace("page.js", &script.path)
        .replace("rules.js", &rules.path)
        .replace("page.css", &style.path);
    PageFile::new(html, "html", "text/html; charset=utf-8")
});

/// Returns the paths of the files that the page names.
pub fn page_files() -> [&'static str; 3] {
    FILES.each_ref().map(|file| file.path.as_str())
}

/// File of the page.
struct PageFile {
    /// Path below the root. It names the content, so that an update needs no purge.
    path: String,
    text: String,
    hash: Sha256,
    content_type: &'static str,
}

impl PageFile {
    fn new(text: String, extension: &str, content_type: &'static str) -> Self {
        let hash = Sha256::of(text.as_bytes());
        Self {
            path: format!("page/{}.{extension}", &hash.to_string()[..16]),
            text,
            hash,
            content_type,
        }
    }
}

impl PageFile {
    /// Returns the HTML with a title of the site, which the script reads too.
    fn titled(title: &str) -> Self {
        let title = title.replace('&', "&amp;").replace('<', "&lt;");
        let title = title.replace('"', "&quot;");
        let html = PAGE.text.replace(
            &format!("<title>{TITLE}</title>"),
            &format!(
                "<title>{title}</title>\n  <meta name=\"application-name\" content=\"{title}\">"
            ),
        );
        Self::new(html, "html", PAGE.content_type)
    }
}

pub(super) async fn page(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let titled = call.app.settings.title.as_deref().map(PageFile::titled);
    let page = titled.as_ref().unwrap_or(&PAGE);
    let page = file(call, page, CachePolicy::Pointer).await?;
    let page = page.with(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    Ok(page.with(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ))
}

pub(super) async fn asset(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let path = call.request.uri.path().strip_prefix('/');
    let found = FILES.iter().find(|file| path == Some(&file.path));
    let found = found.ok_or(ApiError::UnknownPath)?;
    file(call, found, CachePolicy::Immutable).await
}

/// Returns the stored document for search of a catalog, in the coding that the client prefers: a
/// script cannot decode zstd.
pub(super) async fn search_document(call: RouteCall<'_>) -> Result<Representation, ApiError> {
    let state = call.state().await?;
    let snapshot = state.snapshot().await?;
    let object = snapshot.facts(SEARCH.name).ok_or(ApiError::NoSearch)?;
    let encoding = call.encoding()?;
    let payload = match encoding {
        // The stored bytes, and their tag.
        Encoding::Zstd => Payload::Object(object),
        _ => Payload::Document {
            object,
            encoding,
            max: Facts::<SearchPackage>::MAX_BYTES,
        },
    };
    let representation = Representation::of(payload, CachePolicy::Pointer);
    Ok(representation
        .dated(&call.app.head(&state))
        .negotiated(encoding))
}

async fn file(
    call: RouteCall<'_>,
    file: &PageFile,
    cache: CachePolicy,
) -> Result<Representation, ApiError> {
    let encoding = call.encoding()?;
    let plain = Bytes::copy_from_slice(file.text.as_bytes());
    let coded = call.coded(file.hash, encoding, || 0, || ready(Ok(plain)));
    let bytes = coded.await?;
    let tag = Tag::of_made(file.hash, encoding);
    let coded = Representation::new(tag, Payload::Bytes(bytes), cache).negotiated(encoding);
    let file = coded.with_type(file.content_type);
    Ok(file.with(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ))
}
