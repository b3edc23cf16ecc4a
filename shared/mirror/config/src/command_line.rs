//! Errors of a command line, which may hold the passwords of URLs.

use std::io::Write;

use clap::error::{ContextKind, ContextValue, Error};
use clap::{Command, Parser};
use model::text::{is_unprintable, line, value_without_secrets, without_secrets};

/// Longest argument that an error shows, in characters.
const SHOWN_CHARS: usize = 1000;

/// Guidance for people who type a command line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guidance {
    /// Address of the manual, with which the help of each command ends. Default: none.
    pub manual: Option<&'static str>,
    /// Words that people type and that are no command, each with a tip.
    pub tips: &'static [(&'static str, &'static str)],
}

/// Parses the command line. Prints help or an error, and exits, as [`Parser::parse`] does. An error
/// shows neither the secrets of URLs, because logs of pods and of cron jobs keep it, nor what
/// changes a terminal.
pub fn parse_arguments<P: Parser>(guidance: Guidance) -> P {
    let mut command = P::command();
    if let Some(manual) = guidance.manual {
        command = with_manual(command, manual);
    }
    let parsed = command
        .try_get_matches_from_mut(std::env::args_os())
        .and_then(|mut matches| P::from_arg_matches_mut(&mut matches));
    parsed.unwrap_or_else(|error| {
        let mut error = error.format(&mut command);
        if !error.use_stderr() {
            error.exit();
        }
        give_tip(&mut error, guidance.tips);
        // What cannot be written there can be told nowhere.
        write!(anstream::stderr(), "{}", shown(&mut error)).ok();
        std::process::exit(error.exit_code());
    })
}

/// Ends the help of a command, and of all commands below it, with the address of the manual.
fn with_manual(command: Command, manual: &str) -> Command {
    let mut help = String::new();
    if let Some(text) = command.get_after_help() {
        help = format!("{text}\n\n");
    }
    let command = command.after_help(format!("{help}Manual: {manual}"));
    command.mut_subcommands(|command| with_manual(command, manual))
}

/// Puts a tip in place of the command whose name is similar to an unknown word.
fn give_tip(error: &mut Error, tips: &[(&'static str, &'static str)]) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let Some((_, tip)) = tips.iter().find(|(known, _)| known == word) else {
        return;
    };
    error.remove(ContextKind::SuggestedSubcommand);
    let tip = ContextValue::StyledStrs(vec![(*tip).into()]);
    error.insert(ContextKind::Suggested, tip);
}

/// Returns the text of an error, in colours.
fn shown(error: &mut Error) -> String {
    let context: Vec<(ContextKind, ContextValue)> = error
        .context()
        .map(|(kind, value)| (kind, value.clone()))
        .collect();
    let mut hidden = Vec::new();
    for (kind, value) in context {
        if let ContextValue::String(text) = value {
            // A suggestion repeats the argument, in colours.
            if text.contains(is_unprintable) {
                error.remove(ContextKind::Suggested);
            }
            let shown = shown_value(&text);
            error.insert(kind, ContextValue::String(shown.clone()));
            hidden.push((text, shown));
        }
    }
    // The reason is that of a parser, which may repeat the value or a part of it.
    let mut rendered = error.render().ansi().to_string();
    hidden.retain(|(text, shown)| text != shown);
    for (text, shown) in hidden {
        rendered = rendered.replace(&text, &shown);
    }
    without_secrets(&rendered)
}

fn shown_value(text: &str) -> String {
    line(&value_without_secrets(text), SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    /// Returns the error of a program with an option `--from` that takes no value, and an argument.
    fn error_of(arguments: &[&str]) -> String {
        let refuse = |text: &str| Err::<String, _>(format!("{text:?} is no mirror"));
        let command = Command::new("program")
            .arg(Arg::new("from").long("from").value_parser(refuse))
            .arg(Arg::new("kind").long("kind").value_parser(["a", "b"]))
            .subcommand(Command::new("sync"));
        let words = std::iter::once(&"program").chain(arguments);
        shown(&mut command.try_get_matches_from(words).unwrap_err())
    }

    #[test]
    fn help_of_each_command_ends_with_the_manual() {
        let inner = Command::new("sync").after_help("Examples: none");
        let mut command = with_manual(Command::new("program").subcommand(inner), "https://m");
        let help = command.render_help().to_string();
        assert!(help.ends_with("\n\nManual: https://m\n"), "{help}");
        let inner = command.find_subcommand_mut("sync").unwrap();
        let help = inner.render_help().to_string();
        let end = "\n\nExamples: none\n\nManual: https://m\n";
        assert!(help.ends_with(end), "{help}");
    }

    #[test]
    fn error_of_a_known_word_has_its_tip_alone() {
        let error_of = |word: &str| {
            let command = Command::new("program").subcommand(Command::new("sync"));
            let mut error = command.try_get_matches_from(["program", word]).unwrap_err();
            give_tip(&mut error, &[("synk", "`carry` does it")]);
            shown(&mut error)
        };
        let error = error_of("synk");
        assert!(error.contains("`carry` does it"), "{error}");
        assert!(!error.contains("sync"), "{error}");
        assert!(error_of("synq").contains("sync"));
    }

    #[test]
    fn error_of_each_kind_hides_the_secret_of_a_url() {
        let url = "https://robot:hunter2@host/x?token=hunter2";
        for arguments in [
            ["--from", url],
            ["--kind", url],
            [url, "a"],
            ["sync", url],
            ["--kind", "s3://robot:hunter2/x@host"],
            ["--kind", "https://robot:hunter2 hunter2@host"],
            ["--kind", "robot:hunter2@host:5000/a"],
            ["--from", "robot:hunter2@host:5000/a"],
            ["--from", "https://robot:hunter2 hunter2@host"],
            ["sync", "--https://robot:hunter2@host"],
        ] {
            let error = error_of(&arguments);
            assert!(
                error.contains("***@host") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[test]
    fn error_escapes_what_changes_a_terminal() {
        for arguments in [
            ["--kind", "a\u{1b}[2J\u{202e}\rb"],
            ["sync", "--a\u{1b}[2J\u{202e}\rb"],
        ] {
            let error = error_of(&arguments);
            assert!(error.contains(r"a\u{1b}[2J\u{202e}\u{d}b"), "{error:?}");
            assert!(!error.contains("\u{1b}[2J"), "{error:?}");
        }
    }
}
