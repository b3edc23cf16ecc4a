//! YAML as `sigs.k8s.io/yaml` reads it: granit-parser's events under go-yaml v2's rules.

mod budget;
mod build;
mod encoding;
mod float;
mod replay;
mod resolve;
mod separator;
mod source;
pub(crate) mod split;

use crate::canon::Canon;
use crate::error::Problem;
use crate::limits::Limits;

use build::Builder;
use source::Source;

/// What is wrong, and on which line of the document.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: Option<usize>,
    pub(crate) problem: Problem,
}

/// Parses one piece of a stream; calls `emit` for every document in it that is not null.
///
/// Mostly there is one document, but `...` can end it and let another one follow.
pub(crate) fn parse(
    piece: &[u8],
    limits: &Limits,
    canon: &mut Canon,
    emit: &mut dyn FnMut(&mut Canon) -> Result<(), Problem>,
) -> Result<(), Fault> {
    let text = encoding::decode(piece).map_err(|(line, problem)| Fault {
        line: Some(line),
        problem,
    })?;
    let mut source = Source::new(&text, limits);
    while source.document()? {
        canon.clear();
        let line = source.line();
        let object = Builder::new(canon, limits).build(&mut source)?;
        if object {
            emit(canon).map_err(|problem| Fault {
                line: Some(line),
                problem,
            })?;
        }
    }
    Ok(())
}
