use utoipa::openapi::{
    ComponentsBuilder,
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};

const SCHEMES: [(&str, HttpAuthScheme, &str); 2] = [
    (
        "basic",
        HttpAuthScheme::Basic,
        "RFC 7617: a name and its password, or a name and its token",
    ),
    ("bearer", HttpAuthScheme::Bearer, "RFC 6750: a token"),
];

/// Adds the authentication schemes of mirrors that answer only to some users.
pub(super) fn schemes(components: ComponentsBuilder) -> ComponentsBuilder {
    SCHEMES
        .into_iter()
        .fold(components, |components, (name, scheme, text)| {
            let http = Http::builder().scheme(scheme).description(Some(text)).build();
            components.security_scheme(name, SecurityScheme::Http(http))
        })
}

/// Returns "either scheme or none": each mirror decides for itself if it wants credentials.
pub(super) fn optional() -> Vec<SecurityRequirement> {
    let schemes = SCHEMES.map(|(name, ..)| SecurityRequirement::new(name, [""; 0]));
    [SecurityRequirement::default()].into_iter().chain(schemes).collect()
}
