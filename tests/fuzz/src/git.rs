use source::{Error, PlainHttp, Proxy, SkippableLayers, Source, SourceSettings, Sources};
use testkit::{DeltaBuilder, FileServer, GitKind, GitRepo, PackBuilder, packet};

use crate::{images::Seen, images::limits, runtime::run};

/// First byte of an input that is the whole answer to a request for a pack. In others, it is the number of objects of a pack,
/// whose entries follow.
const ANSWER: u8 = 0;

/// Maximum size of an error in bytes: a few texts of 200 characters, each of which may be escaped.
const ERROR_BYTES: usize = 8 << 10;

const FILES: &[(&str, &str)] = &[("a/x.yaml", "x: 1\n"), ("y.yaml", "y: 1\n")];

/// A repository of one commit behind a server, and a client.
struct GitSite {
    // Only kept: it serves until it is dropped.
    _server: FileServer,
    repo: GitRepo,
    images: Sources,
    source: Source,
}

thread_local! {
    static SITE: GitSite = run(GitSite::start());
}

impl GitSite {
    async fn start() -> Self {
        let (server, repo) = (FileServer::start().await, GitRepo::default());
        repo.serve(&server, "/repo");
        let source = format!("git:{}#{}", server.url("/repo"), repo.commit(FILES));
        let mut settings = SourceSettings {
            limits: limits(),
            ..SourceSettings::default()
        };
        settings
            .logins
            .set([("test", "{}")])
            .expect("an empty document has no problem");
        settings.http.plain_http = PlainHttp::Hosts(vec![server.host().to_owned()]);
        settings.http.proxy = Proxy::Off;
        // A connection that breaks is the same input again.
        settings.http.retry.attempts = Some(1);
        Self {
            images: Sources::new(settings).expect("the settings work"),
            source: source.parse().expect("a source"),
            _server: server,
            repo,
        }
    }
}

/// Reads a commit from any answer of a server: what is accepted has the files of the commit, because its name is a hash. An
/// error is one short line without control characters.
///
/// # Panics
/// If not.
pub fn git(input: &[u8]) {
    let Some((form, rest)) = input.split_first() else {
        return;
    };
    let answer = match *form {
        ANSWER => rest.to_vec(),
        count => answer(&PackBuilder::default().raw(rest).declaring(count.into()).finish()),
    };
    let read = SITE.with(|site| {
        site.repo.send_answer(answer);
        let revision = site.source.pinned().expect("the source names a commit");
        let none = SkippableLayers::default();
        run(site.images.read(&site.source, revision, &none, Seen::default()))
    });
    match read {
        Ok((seen, _)) => {
            let files = seen.files.iter();
            let files: Vec<_> = files
                .map(|(path, content)| (path.as_str(), content.as_slice()))
                .collect();
            let want: Vec<_> = FILES
                .iter()
                .map(|(path, content)| (*path, content.as_bytes()))
                .collect();
            assert_eq!(files, want);
        }
        Err(Error::Task(panic)) => panic!("{panic}"),
        Err(error) => {
            let text = model::text::error_line(&error);
            assert!(!text.chars().any(model::text::is_unprintable), "{text:?}");
            assert!(text.len() <= ERROR_BYTES, "{} bytes: {text}", text.len());
        }
    }
}

fn answer(pack: &[u8]) -> Vec<u8> {
    [
        packet(b"packfile\n"),
        packet(&[b"\x01", pack].concat()),
        b"0000".to_vec(),
    ]
    .concat()
}

/// Returns the commit as a pack of whole objects and as one with deltas, and an answer.
pub(crate) fn git_seeds() -> Vec<Vec<u8>> {
    let repo = GitRepo::default();
    repo.commit(FILES);
    let whole = repo.pack();
    let copy = DeltaBuilder::new(5, 5).copy(0, 5);
    let base = testkit::object_name(GitKind::Blob, FILES[0].1.as_bytes());
    let deltas = whole
        .clone()
        .delta_of(0, &copy)
        .delta_of_name(&base, &copy.insert(b"x"));
    // Behind the header and before the checksum.
    let entries = |pack: &PackBuilder, count: u8| {
        let pack = pack.finish();
        [&[count], &pack[12..pack.len() - 20]].concat()
    };
    let mut seeds = vec![entries(&whole, 5), entries(&deltas, 7)];
    seeds.push([vec![ANSWER], answer(&whole.finish())].concat());
    seeds.push([vec![ANSWER], packet(b"ERR upload-pack: not our ref")].concat());
    seeds
}
