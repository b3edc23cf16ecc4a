//! Mirrors of registries, and registries that are blocked.

use source::{RegistryMirror, RegistryRule, Sources};
use testkit::{Layer, Registry};

use crate::kit::{catalog, client_with, failed, plain, pull, push, small, source};

/// Returns the rule that these mirrors are asked before the registry.
fn rule(registry: &Registry, mirrors: &[&Registry]) -> RegistryRule {
    let mirror = |mirror: &&Registry| RegistryMirror {
        location: mirror.host().to_owned(),
        for_tags: true,
        for_digests: true,
        is_insecure: false,
    };
    RegistryRule {
        prefix: registry.host().to_owned(),
        location: None,
        is_insecure: false,
        is_blocked: false,
        mirrors: mirrors.iter().map(mirror).collect(),
    }
}

fn images(registry: &Registry, rule: &RegistryRule) -> Sources {
    let mut hosts = vec![registry.host()];
    hosts.extend(rule.mirrors.iter().map(|mirror| mirror.location.as_str()));
    client_with(registry.host(), |settings| {
        settings.http.plain_http = plain(&hosts);
        settings.rules.set(vec![rule.clone()]);
    })
}

#[tokio::test]
async fn first_mirror_that_has_the_image_is_read_in_place_of_the_registry() {
    let (registry, empty) = (Registry::start().await, Registry::start().await);
    let mirror = Registry::start().await;
    push(&mirror, &small());
    let images = images(&registry, &rule(&registry, &[&empty, &mirror]));
    assert_eq!(
        pull(&images, &registry).await.unwrap().0.list(),
        ["a.yaml=a"]
    );
    assert!(images.exists(&source(&registry)).await.unwrap());
    assert_eq!(registry.requests().len(), 0);
}

#[tokio::test]
async fn registry_is_read_when_its_mirrors_fail_and_its_own_error_names_them() {
    let (registry, empty) = (Registry::start().await, Registry::start().await);
    let gone = Registry::start().await;
    let rule = rule(&registry, &[&gone, &empty]);
    drop(gone);
    let images = images(&registry, &rule);
    let text = failed(images.resolve(&source(&registry)).await, "not found");
    let mirror = format!("its mirror failed: registry {}", empty.host());
    assert!(
        text.contains(registry.host()) && text.contains(&mirror),
        "{text}"
    );
    push(&registry, &small());
    assert_eq!(
        pull(&images, &registry).await.unwrap().0.list(),
        ["a.yaml=a"]
    );
}

#[tokio::test]
async fn mirror_for_digests_is_not_asked_for_tags() {
    let (registry, mirror) = (Registry::start().await, Registry::start().await);
    push(&registry, &small());
    push(
        &mirror,
        &catalog([Layer::new().file("configs/a.yaml", "older")]),
    );
    let mut rule = rule(&registry, &[&mirror]);
    rule.mirrors[0].for_tags = false;
    let images = images(&registry, &rule);
    let digest = images.resolve(&source(&registry)).await.unwrap();
    assert_eq!(mirror.requests().len(), 0);
    assert_eq!(digest, images.resolve(&source(&registry)).await.unwrap());
    // The mirror has another image under the tag, and not this digest.
    assert_eq!(
        pull(&images, &registry).await.unwrap().0.list(),
        ["a.yaml=a"]
    );
    push(&mirror, &small());
    let before = registry.requests().len();
    assert_eq!(
        pull(&images, &registry).await.unwrap().0.list(),
        ["a.yaml=a"]
    );
    assert_eq!(registry.requests().len(), before + 1, "only the tag");
}

#[tokio::test]
async fn blocked_registry_is_not_asked() {
    let registry = Registry::start().await;
    push(&registry, &small());
    let mut rule = rule(&registry, &[]);
    rule.is_blocked = true;
    let asked = images(&registry, &rule).resolve(&source(&registry)).await;
    let text = failed(asked, "blocked");
    assert!(text.contains("registries.conf blocks it"), "{text}");
    assert_eq!(registry.requests().len(), 0);
}
