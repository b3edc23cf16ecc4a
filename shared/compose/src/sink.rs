use std::io::{self, Cursor, Read};

use crate::{ComposeError, ComposedContent, PackageSink};

/// Supplier of lines; `None` behind the last one.
pub(crate) type NextLine<'a> = dyn FnMut() -> Result<Option<Vec<u8>>, ComposeError> + 'a;

/// Passes lines to the receiver as it reads them. Those that it leaves are made too, for what they require.
pub(crate) fn push_lines(sink: &mut PackageSink<'_>, name: &str, next: &mut NextLine<'_>) -> Result<(), ComposeError> {
    let mut lines = LineReader {
        next,
        line: Cursor::default(),
        failure: None,
    };
    let pushed = sink(name, ComposedContent::Lines(&mut lines));
    if let Some(error) = lines.failure {
        return Err(error);
    }
    pushed.map_err(ComposeError::Sink)?;
    while next()?.is_some() {}
    Ok(())
}

struct LineReader<'a, 'n> {
    next: &'a mut NextLine<'n>,
    line: Cursor<Vec<u8>>,
    /// Error of a line. The receiver has another in its place.
    failure: Option<ComposeError>,
}

impl Read for LineReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.line.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        match (self.next)() {
            Ok(None) => Ok(0),
            Ok(Some(line)) => {
                self.line = Cursor::new(line);
                self.line.read(buffer)
            }
            Err(error) => {
                self.failure = Some(error);
                Err(io::Error::other("a line cannot be composed"))
            }
        }
    }
}
