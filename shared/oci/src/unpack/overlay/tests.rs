use super::*;

/// Reads layers from the top down. `d/` is a directory, `-x` a whiteout, `!d` an opaque directory, `a>b` a symlink, `a=b` a hard
/// link with a target from the image's root. `.` is the root as a directory, `~` closes it, and `^` stands in its place.
/// Returns the files that the sink gets too, with their layers.
fn stack(layers: &[&[&str]]) -> Result<(Overlay, Vec<String>), Contradiction> {
    let mut overlay = Overlay::default();
    let mut fed = Vec::new();
    for (depth, layer) in layers.iter().enumerate() {
        for entry in *layer {
            if let Some(path) = claim(&mut overlay, depth, entry)? {
                fed.push(format!("{path}@{depth}"));
            }
        }
    }
    Ok((overlay, fed))
}

fn claim(overlay: &mut Overlay, depth: Depth, entry: &str) -> Result<Option<String>, Contradiction> {
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

/// What happens, the layers from the top down with `|` between, and the files that the sink gets.
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
        let layers: Vec<Vec<&str>> = layers.split(" | ").map(|layer| layer.split(' ').collect()).collect();
        let fed = stack(&layers.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let fed = fed.map_or_else(|Contradiction| "refused".to_owned(), |(_, fed)| fed.join(" "));
        assert_eq!(fed, expected.trim(), "{row}");
    }
}

#[test]
fn root_state_comes_from_top_layer() {
    for (layers, inside) in [
        ([&["."][..], &["^"]], Some(0)),
        ([&["a"], &["^"]], Some(0)),
        ([&["^"], &["a"]], None),
    ] {
        let (overlay, _) = stack(&layers).unwrap();
        assert_eq!(
            (overlay.inside, overlay.is_closed_below(1)),
            (inside, true),
            "{layers:?}"
        );
    }
}

#[test]
fn links_are_followed_inside_catalog() {
    let root = Root::around(&[vec!["data".to_owned(), "fbc".to_owned()]]);
    let follow = |layers: &[&[&str]], link: &str| {
        let (overlay, _) = stack(layers).unwrap();
        let links = LinkResolver::new(&overlay, &root, u64::MAX).resolve().unwrap();
        links.into_iter().find(|(path, _)| *path == link).unwrap().1
    };
    let files: &[&str] = &["d/f", "g"];
    for (target, want) in [
        ("g", Ok("g")),
        ("./d//f", Ok("d/f")),
        ("/data/fbc/d/f", Ok("d/f")),
        ("../fbc/g", Ok("g")),
        ("../../../../data/fbc/g", Ok("g")),
        ("d", Err(LinkError::Directory("d".to_owned()))),
        (".", Err(LinkError::Directory(".".to_owned()))),
        ("nope", Err(LinkError::Broken("nope".to_owned()))),
        ("g/x", Err(LinkError::Broken("g/x".to_owned()))),
        ("/etc/passwd", Err(LinkError::Outside("/etc/passwd".to_owned()))),
        ("l", Err(LinkError::Cycle("l".to_owned()))),
    ] {
        let link = format!("l>{target}");
        assert_eq!(follow(&[files, &[&link]], "l"), want.map(ToOwned::to_owned), "{target}");
    }
    assert_eq!(follow(&[&["a>b", "b>c/x", "c>d", "d/x"]], "a"), Ok("d/x".to_owned()));
    assert!(matches!(follow(&[&["a>b", "b>a"]], "a"), Err(LinkError::Cycle(_))));
}

#[test]
fn hard_link_keeps_content_of_its_layer() {
    let root = Root::around(&[vec!["fbc".to_owned()]]);
    let follow = |layers: &[&[&str]]| {
        let (overlay, _) = stack(layers).unwrap();
        LinkResolver::new(&overlay, &root, u64::MAX)
            .resolve()
            .unwrap()
            .remove(0)
            .1
    };
    let target = || "fbc/f".to_owned();
    assert_eq!(follow(&[&["f", "l=fbc/f"]]), Ok("f".to_owned()));
    assert_eq!(follow(&[&["l=/fbc/f"], &["f"]]), Ok("f".to_owned()));
    assert_eq!(follow(&[&["f"], &["f", "l=fbc/f"]]), Err(LinkError::Replaced(target())));
    assert_eq!(
        follow(&[&["-f"], &["f", "l=fbc/f"]]),
        Err(LinkError::Replaced(target()))
    );
    assert_eq!(follow(&[&["l=fbc/f"]]), Err(LinkError::Broken(target())));
    assert_eq!(follow(&[&["l=etc/f"]]), Err(LinkError::Outside("etc/f".to_owned())));
}

#[test]
fn hard_link_to_symlink_starts_at_its_own_folder() {
    let root = Root::around(&[vec!["fbc".to_owned()]]);
    let (overlay, _) = stack(&[
        &["f", "d/f", "d/s>f", "l=fbc/d/s"],
        &["e/l=fbc/e/m", "e/m=fbc/d/s", "d/s>../f"],
    ])
    .unwrap();
    let links = LinkResolver::new(&overlay, &root, u64::MAX).resolve().unwrap();
    let link = |name: &str| &links.iter().find(|(path, _)| *path == name).unwrap().1;
    assert_eq!(link("d/s"), &Ok("d/f".to_owned()));
    assert_eq!(link("l"), &Ok("f".to_owned()));
    assert!(matches!(link("e/m"), Err(LinkError::Replaced(_))));
    let (overlay, _) = stack(&[&["f", "d/f", "d/s>f", "e/l=fbc/e/m", "e/m=fbc/d/s", "e/f"]]).unwrap();
    let links = LinkResolver::new(&overlay, &root, u64::MAX).resolve().unwrap();
    assert!(links.contains(&("e/l", Ok("e/f".to_owned()))));
}
