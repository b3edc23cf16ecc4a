use super::*;

/// Layers from the top down; `d/` is a directory, `-x` a whiteout, `!d` an opaque directory,
/// `a>b` a symlink, `a=b` a hard link with a target from the image's root.
fn stack(layers: &[&[&str]]) -> (Overlay, Vec<String>) {
    let mut overlay = Overlay::default();
    let mut fed = Vec::new();
    for (depth, layer) in layers.iter().enumerate() {
        for entry in *layer {
            if let Some(path) = claim(&mut overlay, depth, entry).unwrap() {
                fed.push(format!("{path}@{depth}"));
            }
        }
    }
    (overlay, fed)
}

fn claim(overlay: &mut Overlay, depth: Depth, entry: &str) -> Result<Option<String>, Contradiction> {
    let (path, kind) = if let Some(path) = entry.strip_prefix('-') {
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

/// A name, the layers, and the files that the sink gets.
type OverlayCase<'a> = (&'a str, &'a [&'a [&'a str]], &'a [&'a str]);

#[test]
fn upper_layer_hides_lower_layer() {
    let cases: &[OverlayCase<'_>] = &[
        ("a file replaces a file", &[&["a"], &["a", "b"]], &["a@0", "b@1"]),
        ("folders merge", &[&["d/a"], &["d/b"]], &["d/a@0", "d/b@1"]),
        ("a whiteout hides a file", &[&["-a"], &["a", "b"]], &["b@1"]),
        ("a whiteout hides a folder", &[&["-d"], &["d/a", "d/e/b"]], &[]),
        ("a whiteout spares its own layer", &[&["-a", "a"], &["a"]], &["a@0"]),
        ("a whiteout spares upper layers", &[&["a"], &["-a"], &["a"]], &["a@0"]),
        (
            "an opaque folder hides what is below",
            &[&["!d", "d/new"], &["d/old", "x"]],
            &["d/new@0", "x@1"],
        ),
        ("a file replaces a folder", &[&["d"], &["d/a"]], &["d@0"]),
        ("a folder replaces a file", &[&["d/a"], &["d"]], &["d/a@0"]),
        ("an empty folder replaces a file", &[&["d/"], &["d"]], &[]),
        (
            "a hidden file ends the folder below it",
            &[&["d/a"], &["d"], &["d/b"]],
            &["d/a@0"],
        ),
        ("a whiteout in the middle", &[&["x"], &["-d"], &["d/a"]], &["x@0"]),
        ("a whiteout stands in a folder", &[&["-d/a"], &["d", "e"]], &["e@1"]),
        ("an opaque folder is a folder", &[&["!d/e"], &["d/e"], &["d"]], &[]),
        ("what is hidden had a folder too", &[&["-d/a"], &["d/a"], &["d"]], &[]),
        (
            "a file where a whiteout stood",
            &[&["-d/a", "d"], &["d/a", "d/b"]],
            &["d@0"],
        ),
        (
            "names that only share a prefix",
            &[&["-d"], &["d2/a", "d.yaml"]],
            &["d2/a@1", "d.yaml@1"],
        ),
    ];
    for (what, layers, want) in cases {
        assert_eq!(stack(layers).1, *want, "{what}");
    }
}

#[test]
fn layer_that_contradicts_itself_is_refused() {
    for entries in [
        ["a", "a"],
        ["a/", "a"],
        ["a", "a/b"],
        ["a/b", "a"],
        ["a", "a/"],
        ["a>x", "a"],
    ] {
        let mut overlay = Overlay::default();
        let results: Vec<_> = entries.iter().map(|entry| claim(&mut overlay, 0, entry)).collect();
        assert_eq!(results[1], Err(Contradiction), "{entries:?}");
    }
    assert_eq!(stack(&[&["d/", "d/", "d/a"]]).1, ["d/a@0"]);
}

#[test]
fn closed_root_hides_lower_layers() {
    let mut overlay = Overlay::default();
    assert_eq!(overlay.claim(0, "a", NodeKind::File), Ok(true));
    overlay.close(0);
    assert_eq!(overlay.claim(0, "b", NodeKind::File), Ok(true));
    assert!(overlay.is_closed_below(0));
    assert_eq!(overlay.claim(1, "c", NodeKind::File), Ok(false));
}

#[test]
fn root_state_comes_from_top_layer() {
    let mut overlay = Overlay::default();
    assert_eq!(overlay.inside, None);
    overlay.claim_root(0).unwrap();
    overlay.block(1, true).unwrap();
    assert_eq!((overlay.inside, overlay.is_closed_below(1)), (Some(0), true));
}

#[test]
fn links_are_followed_inside_catalog() {
    let root = Root::around(&[vec!["data".to_owned(), "fbc".to_owned()]]);
    let follow = |layers: &[&[&str]], link: &str| {
        let (overlay, _) = stack(layers);
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
        let (overlay, _) = stack(layers);
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
    ]);
    let links = LinkResolver::new(&overlay, &root, u64::MAX).resolve().unwrap();
    let link = |name: &str| &links.iter().find(|(path, _)| *path == name).unwrap().1;
    assert_eq!(link("d/s"), &Ok("d/f".to_owned()));
    assert_eq!(link("l"), &Ok("f".to_owned()));
    assert!(matches!(link("e/m"), Err(LinkError::Replaced(_))));
    let (overlay, _) = stack(&[&["f", "d/f", "d/s>f", "e/l=fbc/e/m", "e/m=fbc/d/s", "e/f"]]);
    let links = LinkResolver::new(&overlay, &root, u64::MAX).resolve().unwrap();
    assert!(links.contains(&("e/l", Ok("e/f".to_owned()))));
}

#[test]
fn root_as_folder_and_file_in_one_layer_is_refused() {
    for is_root in [true, false] {
        let mut overlay = Overlay::default();
        overlay.claim(0, "a", NodeKind::File).unwrap();
        assert_eq!(overlay.block(0, is_root), Err(Contradiction));
        let mut overlay = Overlay::default();
        overlay.block(0, is_root).unwrap();
        assert_eq!(overlay.claim(0, "a", NodeKind::File), Err(Contradiction));
        assert_eq!(overlay.claim(0, "d", NodeKind::Dir), Err(Contradiction));
        assert_eq!(overlay.claim(1, "a", NodeKind::File), Ok(false));
        // Upper layers are not concerned.
        let mut overlay = Overlay::default();
        overlay.claim(0, "a", NodeKind::File).unwrap();
        overlay.block(1, is_root).unwrap();
        assert_eq!(overlay.claim(2, "b", NodeKind::File), Ok(false));
        assert_eq!(overlay.inside, Some(0));
    }
}
