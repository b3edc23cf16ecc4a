use super::*;

/// Reads layers from the top down, with `|` between. `d/` is a directory, `-x` a whiteout, `!d` an
/// opaque directory, `a>b` a symlink, `a=b` a hard link with a target from the image's root. `.` is
/// the root as a directory, `~` closes it, and `^` stands in its place. Returns the files that the
/// sink gets too, with their layers.
fn stack(layers: &str) -> Result<(Overlay, Vec<String>), Contradiction> {
    let mut overlay = Overlay::default();
    let mut fed = Vec::new();
    for (depth, layer) in layers.split(" | ").enumerate() {
        for entry in layer.split(' ') {
            if let Some(path) = claim(&mut overlay, depth, entry)? {
                fed.push(format!("{path}@{depth}"));
            }
        }
    }
    Ok((overlay, fed))
}

fn claim(
    overlay: &mut Overlay,
    depth: Depth,
    entry: &str,
) -> Result<Option<String>, Contradiction> {
    let (path, kind) = if entry == "." {
        return overlay.claim_root(depth).map(|()| None);
    } else if entry == "^" {
        return overlay.block(depth, true).map(|()| None);
    } else if entry == "~" {
        overlay.close(depth);
        return Ok(None);
    } else if let Some(path) = entry.strip_prefix('-') {
        overlay.whiteout(depth, path.to_owned());
        return Ok(None);
    } else if let Some(path) = entry.strip_prefix('!') {
        overlay.opaque(depth, path.to_owned());
        return Ok(None);
    } else if let Some(path) = entry.strip_suffix('/') {
        return overlay.claim(depth, path, NodeKind::Dir).map(|_| None);
    } else if let Some((path, target)) = entry.split_once('>') {
        (path, NodeKind::Symlink(target.to_owned()))
    } else if let Some((path, target)) = entry.split_once('=') {
        (path, NodeKind::HardLink(target.to_owned()))
    } else {
        (entry, NodeKind::File)
    };
    Ok(overlay.claim(depth, path, kind)?.then(|| path.to_owned()))
}

/// Rows: a name of the case, the layers from the top down with `|` between, and the files that the
/// sink gets.
const LAYERS: &str = "\
a file replaces a file / a | a b => a@0 b@1
folders merge / d/a | d/b => d/a@0 d/b@1
a folder occurs twice in a layer / d/ d/ d/a => d/a@0
a whiteout hides a file / -a | a b => b@1
a whiteout hides a folder / -d | d/a d/e/b =>
a whiteout spares its own layer / -a a | a => a@0
a whiteout spares upper layers / a | -a | a => a@0
an opaque folder hides what is below / !d d/new | d/old x => d/new@0 x@1
a file replaces a folder / d | d/a => d@0
a folder replaces a file / d/a | d => d/a@0
an empty folder replaces a file / d/ | d =>
a hidden file ends the folder below it / d/a | d | d/b => d/a@0
a whiteout in the middle / x | -d | d/a => x@0
a whiteout stands in a folder / -d/a | d e => e@1
an opaque folder is a folder / !d/e | d/e | d =>
what is hidden had a folder too / -d/a | d/a | d =>
a file where a whiteout stood / -d/a d | d/a d/b => d@0
names that only share a prefix / -d | d2/a d.yaml => d2/a@1 d.yaml@1
a file twice / a a => refused
a folder becomes a file / a/ a => refused
a file becomes a folder above a file / a a/b => refused
a folder of a file becomes a file / a/b a => refused
a file becomes a folder / a a/ => refused
a link becomes a file / a>x a => refused
a closed root hides lower layers only / a ~ b | c => a@0 b@0
a closed root is not opened by a lower layer / a ~ | ~ b => a@0
a root is replaced in a lower layer / a | ^ | b => a@0
a folder as root is replaced in a lower layer / . | ^ | b =>
a root that is replaced hides lower layers / ^ | a =>
a root is replaced after its content / a ^ => refused
a root has a file after it was replaced / ^ a => refused
a root has a folder after it was replaced / ^ d/ => refused";

#[test]
fn upper_layer_hides_lower_layer_and_contradiction_is_refused() {
    for row in LAYERS.lines() {
        let (layers, expected) = row.split_once(" =>").unwrap();
        let (_, layers) = layers.split_once(" / ").unwrap();
        let fed = stack(layers).map_or_else(
            |Contradiction| "refused".to_owned(),
            |(_, fed)| fed.join(" "),
        );
        assert_eq!(fed, expected.trim(), "{row}");
    }
}

#[test]
fn root_state_comes_from_top_layer() {
    for (layers, inside) in [(". | ^", Some(0)), ("a | ^", Some(0)), ("^ | a", None)] {
        let (overlay, _) = stack(layers).unwrap();
        assert_eq!(
            (overlay.inside, overlay.is_closed_below(1)),
            (inside, true),
            "{layers}"
        );
    }
}

/// Layers of a catalog at `data/fbc`, from the top down with `|` between, one of their links, and
/// the file that it leads to.
const LINKS: &str = r#"
d/f g | l>g => l Ok("g")
d/f g | l>./d//f => l Ok("d/f")
d/f g | l>/data/fbc/d/f => l Ok("d/f")
d/f g | l>../fbc/g => l Ok("g")
d/f g | l>../../../../data/fbc/g => l Ok("g")
d/f g | l>d => l Err(Directory("d"))
d/f g | l>. => l Err(Directory("."))
d/f g | l>nope => l Err(Broken("nope"))
d/f g | l>g/x => l Err(Broken("g/x"))
d/f g | l>/etc/passwd => l Err(Outside("/etc/passwd"))
d/f g | l>l => l Err(Cycle("l"))
a>b b>a => a Err(Cycle("b"))
a>b b>c/x c>d d/x => a Ok("d/x")
f l=data/fbc/f => l Ok("f")
l=/data/fbc/f | f => l Ok("f")
f | f l=data/fbc/f => l Err(Replaced("data/fbc/f"))
-f | f l=data/fbc/f => l Err(Replaced("data/fbc/f"))
l=data/fbc/f => l Err(Broken("data/fbc/f"))
l=etc/f => l Err(Outside("etc/f"))
f d/f d/s>f l=data/fbc/d/s | e/m=data/fbc/d/s d/s>../f => d/s Ok("d/f")
f d/f d/s>f l=data/fbc/d/s | e/m=data/fbc/d/s d/s>../f => l Ok("f")
f d/f d/s>f | e/l=data/fbc/e/m e/m=data/fbc/d/s d/s>../f => e/m Err(Replaced("data/fbc/d/s"))
f d/f d/s>f e/l=data/fbc/e/m e/m=data/fbc/d/s e/f => e/l Ok("e/f")
"#;

/// A hard link keeps the content of its layer. One to a symlink starts at its own folder.
#[test]
fn link_is_followed_inside_catalog() {
    let root = Root::around(&[vec!["data".to_owned(), "fbc".to_owned()]]);
    for row in LINKS.trim().lines() {
        let (layers, expected) = row.split_once(" => ").unwrap();
        let (link, expected) = expected.split_once(' ').unwrap();
        let (overlay, _) = stack(layers).unwrap();
        let links = LinkResolver::new(&overlay, &root)
            .resolve(u64::MAX)
            .unwrap();
        let (_, target) = links.into_iter().find(|(path, _)| *path == link).unwrap();
        assert_eq!(format!("{target:?}"), expected, "{row}");
    }
}
