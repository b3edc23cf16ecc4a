//! YAML documents of every odd shape, each made from random choices.

mod flow;

use testkit::Random;

use super::changes::{encode, mutate};
use super::words::{
    BROKEN, ESCAPES, INDICATORS, KEYS, LINES, ODD_ESCAPES, ODD_KEYS, PLAIN, QUOTED, STRINGS,
    TAGGED, TAGS, word,
};

/// Maximum number of lists and mappings inside each other.
const DEPTH: usize = 3;

/// Generator of one file. Parts with an odd shape are rare, so that the rest of a file is compared
/// too.
struct Generator {
    random: Random,
    out: String,
    anchors: Vec<&'static str>,
}

/// Returns a random file. It does not start with a brace: whether such a file is JSON or YAML
/// depends on the version of the Kubernetes libraries.
pub(crate) fn file(random: Random) -> Vec<u8> {
    let mut generator = Generator {
        random,
        out: String::new(),
        anchors: Vec::new(),
    };
    generator.stream();
    let Generator {
        mut random,
        mut out,
        ..
    } = generator;
    if random.one_in(8) {
        mutate(&mut random, &mut out);
    }
    let start = out.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with('{') {
        out = ["---\n", start].concat();
    }
    encode(&mut random, out)
}

impl Generator {
    fn word(&mut self, list: &'static str) -> &'static str {
        word(&mut self.random, list)
    }

    /// Adds one part of a list.
    fn add(&mut self, list: &'static str) {
        let part = self.word(list);
        self.out.push_str(part);
    }

    /// Adds this text once in `count` times.
    fn sometimes(&mut self, count: usize, text: &str) {
        if self.random.one_in(count) {
            self.out.push_str(text);
        }
    }

    fn spaces(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n(' ', count));
    }

    fn stream(&mut self) {
        self.sometimes(40, "\u{feff}");
        self.sometimes(12, "# comment\n");
        if self.random.one_in(25) {
            self.add(
                "%YAML 1.1\n---\n¦%YAML 1.2\n---\n¦%TAG !e! tag:yaml.org,2002:\n---\n¦%TAG ! tag:x,2000:\n---\n¦\
                 %FOO bar\n---\n¦%YAML 1.1\n",
            );
        }
        self.document();
        for _ in 0..3 {
            if !self.random.one_in(6) {
                break;
            }
            self.add("---\n¦---\n¦---\n¦--- # c\n¦---\t\n¦...\n---\n¦...\n¦--- a\n¦---a\n");
            self.anchors.clear();
            self.document();
        }
    }

    fn document(&mut self) {
        self.sometimes(10, "---\n");
        match self.random.below(24) {
            0 | 1 => {
                self.flow_mapping(0);
                self.out.push('\n');
            }
            2 => {
                self.scalar(0, false);
                self.out.push('\n');
            }
            3 => self.sequence(0, 0),
            4 => self.add("¦\n¦# c\n¦null\n¦~\n"),
            _ => self.mapping(0, 0),
        }
        if self.random.one_in(30) {
            self.add("...\n¦... # c\n¦]\n¦}\n¦a\n¦--- \n¦ \n¦\t\n");
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) {
        for at in 0..=self.random.below(4) {
            // The place of the first key is known to the caller.
            if at > 0 {
                self.spaces(indent);
            }
            if self.random.one_in(60) {
                self.out.push_str("# c\n");
                self.spaces(indent);
            }
            if self.random.one_in(9) {
                self.out.push_str("<<:");
                self.merged(depth);
                self.out.push('\n');
                continue;
            }
            self.key();
            self.value(indent, depth);
        }
    }

    fn sequence(&mut self, indent: usize, depth: usize) {
        for at in 0..=self.random.below(3) {
            if at > 0 {
                self.spaces(indent);
            }
            self.out.push('-');
            if depth < DEPTH && self.random.one_in(3) {
                self.out.push(' ');
                self.mapping(indent + 2, depth + 1);
            } else {
                self.value(indent, depth);
            }
        }
    }

    fn key(&mut self) {
        let list = if self.random.one_in(100) {
            ODD_KEYS
        } else {
            KEYS
        };
        let key = self.word(list);
        if key.starts_with('&') {
            self.anchors.push(&key[1..2]);
        }
        self.out.push_str(key);
        self.sometimes(40, " ");
        self.out.push(':');
    }

    fn alias(&mut self) {
        let name = if self.anchors.is_empty() || self.random.one_in(60) {
            "c"
        } else {
            self.random.pick(&self.anchors)
        };
        self.out += &format!("*{name} ");
    }

    /// Adds an anchor and a tag, or none.
    fn properties(&mut self) {
        if self.random.one_in(6) {
            let names: &[&str] = if self.random.one_in(20) {
                &["a.b", "é", ""]
            } else {
                &["a", "b", "a1", "a-b", "a_b"]
            };
            let name = self.random.pick(names);
            self.anchors.push(name);
            self.out += &format!("&{name} ");
        }
        if self.random.one_in(40) {
            self.add(TAGS);
            self.out.push(' ');
        }
    }

    /// Adds the value of a key or an item, after its indicator, and a line feed.
    fn value(&mut self, indent: usize, depth: usize) {
        if self.random.one_in(80) {
            self.add("¦\t¦ \t");
        } else {
            self.add(" ¦ ¦ ¦ ¦ ¦ ¦  ");
        }
        self.properties();
        let deeper = indent + self.random.pick(&[1, 2, 2, 2, 4]);
        match self.random.below(if depth < DEPTH { 24 } else { 17 }) {
            0 if !self.anchors.is_empty() => self.alias(),
            1 | 2 => return self.block_scalar(indent),
            3 if self.random.one_in(2) => {
                self.add(TAGS);
                self.out.push(' ');
                self.add(TAGGED);
            }
            0 | 3..17 => self.scalar(indent, false),
            17 => self.flow_mapping(depth + 1),
            18 => self.flow_sequence(depth + 1),
            19..22 => {
                self.out.push('\n');
                self.spaces(deeper);
                return self.mapping(deeper, depth + 1);
            }
            _ => {
                // A list may stand at the indentation of its key.
                let deeper = if self.random.one_in(3) {
                    indent
                } else {
                    deeper
                };
                self.out.push('\n');
                self.spaces(deeper);
                return self.sequence(deeper, depth + 1);
            }
        }
        if self.random.one_in(12) {
            self.add(" # c¦ ¦#c¦\t¦\t# c¦ #");
        }
        self.out.push('\n');
        self.sometimes(40, "\n");
    }

    fn scalar(&mut self, indent: usize, in_flow: bool) {
        match self.random.below(16) {
            0 | 1 => self.double_quoted(indent),
            2 | 3 => self.single_quoted(indent),
            4 if self.random.one_in(8) => self.add(BROKEN),
            5 if !in_flow => self.lines(indent),
            6..11 => self.add(STRINGS),
            _ => self.add(PLAIN),
        }
    }

    /// Adds a plain scalar of several lines.
    fn lines(&mut self, indent: usize) {
        self.add(STRINGS);
        for _ in 0..=self.random.below(2) {
            self.add("\n¦\n¦\n\n¦ \n¦\n \n");
            let more = self.random.pick(&[0, 1, 2, 2, 3]);
            self.spaces(indent + more);
            self.add(STRINGS);
        }
    }

    fn double_quoted(&mut self, indent: usize) {
        self.out.push('"');
        for _ in 0..self.random.below(5) {
            let part = match self.random.below(20) {
                0 => self.word(ODD_ESCAPES),
                1 => {
                    self.fold(indent);
                    "\\\n  "
                }
                2 => {
                    self.fold(indent);
                    ""
                }
                _ => self.word(ESCAPES),
            };
            self.out.push_str(part);
        }
        self.out.push('"');
    }

    fn single_quoted(&mut self, indent: usize) {
        self.out.push('\'');
        for _ in 0..self.random.below(5) {
            if self.random.one_in(10) {
                self.fold(indent);
            }
            self.add(QUOTED);
        }
        self.out.push('\'');
    }

    /// Adds a line break inside a quoted string.
    fn fold(&mut self, indent: usize) {
        self.add("\n¦ \n¦\n\n¦\t\n¦\n \n\n");
        let indent = indent + self.random.pick(&[1, 1, 2, 2, 4]);
        self.spaces(indent);
        self.sometimes(10, "\t");
    }

    fn block_scalar(&mut self, indent: usize) {
        let indicator = self.word(INDICATORS);
        self.out.push_str(indicator);
        self.out.push('\n');
        let inner = match indicator.bytes().find(u8::is_ascii_digit) {
            Some(digit) if !self.random.one_in(6) => indent + usize::from(digit - b'0'),
            _ => indent + self.random.pick(&[1, 2, 2, 3]),
        };
        for _ in 0..self.random.below(5) {
            let line = self.word(LINES);
            if !line.is_empty() || self.random.one_in(5) {
                let odd = if self.random.one_in(25) {
                    self.random.below(3)
                } else {
                    1
                };
                self.spaces((inner + odd).saturating_sub(1));
            }
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}
