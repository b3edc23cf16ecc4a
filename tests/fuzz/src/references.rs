use source::Source;

/// Parses a source: if it is accepted, its text form parses to the same source.
///
/// # Panics
/// If it does not.
pub(crate) fn references(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(source) = text.parse::<Source>() else {
        return;
    };
    let written = source.to_string();
    assert_eq!(
        written.parse::<Source>().as_ref(),
        Ok(&source),
        "{written:?}"
    );
    if let Source::Registry { reference, pinned } = &source {
        let all = reference.whole();
        assert!(all.bytes().all(|byte| byte.is_ascii_graphic()), "{all:?}");
        assert!(
            all.split('/').all(|part| !matches!(part, "" | "." | "..")),
            "{all:?}"
        );
        assert_eq!(
            pinned.as_ref().map(source::Digest::as_str),
            reference.digest()
        );
        assert!(reference.tag().is_some() || pinned.is_some(), "{all:?}");
    }
}
