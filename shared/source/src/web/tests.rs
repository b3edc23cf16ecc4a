//! Redirects to near addresses, on a network of its own: 127.0.0.1 stands for the internet, all others for the local network.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use fetch::{AddressScope, FetchError, Network, PlainHttp, Proxy, RedirectRefusal};
use testkit::{FileAnswer, FileServer, Layer};

use crate::{Error, ServerFault, SourceSettings, Sources};

const PATH: &str = "/catalog.tar";

fn scope(address: IpAddr) -> AddressScope {
    if address == IpAddr::V4(Ipv4Addr::LOCALHOST) {
        AddressScope::Internet
    } else {
        AddressScope::Site
    }
}

fn images(internal_hosts: &[&str]) -> Sources {
    let mut settings = SourceSettings::default();
    // A document in memory keeps the credential files of this machine out.
    settings.logins.set([("test", "{}")]).unwrap();
    let texts = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect();
    settings.http.plain_http = PlainHttp::Hosts(texts(&["files.example", "inside.example", "127.0.0.1"]));
    settings.http.internal_hosts = texts(internal_hosts);
    settings.http.proxy = Proxy::default();
    settings.http.network = Network {
        scope,
        lookup: Arc::new(|name| {
            let last = if name == "files.example" { 1 } else { 9 };
            Box::pin(async move { Ok(vec![IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))]) })
        }),
    };
    Sources::new(settings).unwrap()
}

#[tokio::test]
async fn redirect_from_internet_to_private_address_is_refused() {
    let server = FileServer::start().await;
    server.put(PATH, Layer::new().file("a.yaml", "a").archive());
    let (_, port) = server.host().rsplit_once(':').unwrap();
    let source = format!("http://files.example:{port}{PATH}").parse().unwrap();
    for (to, advice) in [
        (server.url(PATH), "list 127.0.0.1:"),
        (format!("http://inside.example:{port}{PATH}"), "list inside.example:"),
    ] {
        server.script(PATH, FileAnswer::Redirect(to.clone()));
        let error = images(&[]).resolve(&source).await.unwrap_err();
        let Error::Server(failure) = &error else {
            panic!("{to}: {error}");
        };
        let ServerFault::Fetch(FetchError::Redirect { reason, .. } | FetchError::Address { reason }) = &failure.fault
        else {
            panic!("{to}: {error}");
        };
        assert_eq!(*reason, RedirectRefusal::Private, "{to}");
        assert!(error.to_string().contains(advice), "{error}");
    }
    assert_eq!(server.statuses(), [302, 302], "nothing but the redirects was sent");
    server.script(PATH, FileAnswer::Redirect(server.url(PATH)));
    images(&["127.0.0.1"]).resolve(&source).await.unwrap();
}
