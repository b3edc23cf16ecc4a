//! Archives of every odd shape, each made from a seed.

use std::ops::Range;

use testkit::Random;

/// Returns the parts of a list that is one text.
fn parts(list: &'static [u8], separator: u8) -> Vec<&'static [u8]> {
    list.split(|byte| *byte == separator).collect()
}

/// Formats of a header by their `magic` and `version`.
const MAGICS: &[u8] =
    b"ustar\x0000|ustar\x0000|ustar  \0|ustar  \0|\0\0\0\0\0\0\0\0|ustar\x00xx|ustar 00";

const KINDS: &[u8] = b"00000\x00\x00\x00123455567SVXD ";

const NAMES: &[u8] = b"a|b/c|d/|./e||../up|/abs|\xc3\xa9\xff|\
    nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

/// Numbers as headers spell them, right and wrong.
const NUMBERS: &[u8] = b"| | 7 |7\0\0\0\0\0|\0 7|7\x00 5|8|7x|-1|+1|\x80\0\0\0\0\0\0\x07\0\0\0\0|\
    \x80\0\0\0\0\0\0\0\0\0\0\x05|\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff|\
    \xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";

/// Fields with a number, each from its offset.
const NUMBER_FIELDS: [Range<usize>; 10] = [
    100..108,
    108..116,
    116..124,
    136..148,
    329..337,
    337..345,
    345..357,
    357..369,
    476..488,
    488..500,
];

/// Keys of PAX records, with a space between them.
const KEYS: &[u8] =
    b"path path path linkpath linkpath size size size uid gid mtime atime ctime uname comment \
    SCHILY.xattr.user.x GNU.sparse.name GNU.sparse.major GNU.sparse.minor";

/// Values of PAX records, with a bar between them.
const VALUES: &[u8] =
    b"|p/q|long/|x\ny|x\x00y|=|7|+7|007|-1|7x| 7|9223372036854775808|1.5|.5|-3.25x";

const LONG_NAMES: [&[u8]; 7] = [
    b"l/m",
    b"l/m\x00",
    b"",
    b"\x00",
    b"\x00l",
    b"l\x00m\x00",
    b"l/",
];

struct Generator {
    random: Random,
    out: Vec<u8>,
}

/// Returns the archive of a seed. Most have one odd field at most, so that their content is
/// compared too.
pub(super) fn archive(seed: u64) -> Vec<u8> {
    let mut generator = Generator {
        random: Random::new(seed),
        out: Vec::new(),
    };
    for _ in 0..=generator.random.below(3) {
        generator.member();
    }
    generator.end();
    generator.out
}

impl Generator {
    fn member(&mut self) {
        let content = self.content();
        if self.random.one_in(2) {
            for _ in 0..=self.random.below(3) {
                self.extension(content.len());
            }
        }
        let kind = self.random.pick(KINDS);
        let has_content = !matches!(kind, b'1'..=b'6');
        // Links and folders may declare a size, and no content follows.
        let declared = if has_content || self.random.one_in(4) {
            content.len()
        } else {
            0
        };
        let name = self.random.pick(&parts(NAMES, b'|'));
        self.header(kind, name, declared, 12);
        if has_content {
            self.padded(&content);
        }
        if self.random.one_in(40) {
            self.out.extend([0; 512]);
        }
    }

    /// Returns the content of a file. It may look like a header, which a reader finds if it takes a
    /// wrong size.
    fn content(&mut self) -> Vec<u8> {
        if self.random.one_in(4) {
            let mut inner = Generator {
                random: Random::new(self.random.number()),
                out: Vec::new(),
            };
            inner.header(b'0', b"hidden", 0, usize::MAX);
            return inner.out;
        }
        let size = self.random.pick(&[0, 1, 7, 7, 511, 513]);
        vec![b'a' + self.random.below(26) as u8; size]
    }

    /// Writes a header that describes the next one.
    fn extension(&mut self, content: usize) {
        let kind = self.random.pick(b"xxxxxLLLKKg");
        let name: &[u8] = if self.random.one_in(20) {
            b""
        } else {
            b"extension"
        };
        let text = match kind {
            b'L' | b'K' => self.random.pick(&LONG_NAMES).to_vec(),
            b'g' if self.random.one_in(2) => b"12 comment=\n".to_vec(),
            _ => self.records(content),
        };
        self.header(kind, name, text.len(), 40);
        self.padded(&text);
    }

    fn records(&mut self, content: usize) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..=self.random.below(3) {
            let key: &[u8] = if self.random.one_in(200) {
                b"pa\x00th"
            } else {
                self.random.pick(&parts(KEYS, b' '))
            };
            let right: &[u8] = match key {
                b"size" => &content.to_string().into_bytes(),
                b"path" => b"pax/path",
                b"linkpath" => b"pax/target",
                b"GNU.sparse.major" => b"1",
                b"GNU.sparse.minor" => b"0",
                _ => b"7",
            };
            let value = if self.random.one_in(9) {
                self.random.pick(&parts(VALUES, b'|'))
            } else {
                right
            };
            self.record(&mut text, key, value);
        }
        text
    }

    fn record(&mut self, text: &mut Vec<u8>, key: &[u8], value: &[u8]) {
        let body = [b" ", key, b"=", value, b"\n"].concat();
        let digits = if body.len() + 1 < 10 { 1 } else { 2 };
        let length = body.len() + digits;
        let length = match self.random.below(160) {
            0 => format!("+{}", length + 1),
            1 => format!("0{}", length + 1),
            2 => (length + 1).to_string(),
            3 => (length - 1).to_string(),
            4 => format!(" {}", length + 1),
            5 => "99999999999999999999".to_owned(),
            6 => String::new(),
            _ => length.to_string(),
        };
        text.extend(length.into_bytes());
        text.extend(body);
    }

    /// Writes a header; one of `odd_in` has a strange field.
    fn header(&mut self, kind: u8, name: &[u8], size: usize, odd_in: usize) {
        let mut block = [0; 512];
        put(&mut block, 0, name);
        for field in &NUMBER_FIELDS[..4] {
            put(&mut block, field.start, b"0000007");
        }
        put(&mut block, 124, format!("{size:011o}").as_bytes());
        block[156] = kind;
        put(&mut block, 157, b"target");
        put(&mut block, 257, b"ustar\x0000");
        if odd_in != usize::MAX {
            put(&mut block, 257, self.random.pick(&parts(MAGICS, b'|')));
            if self.random.one_in(6) {
                put(
                    &mut block,
                    345,
                    self.random
                        .pick::<&[u8]>(&[b"prefix", b"7", b"p\xff", b"77777777777"]),
                );
            }
            if self.random.one_in(12) {
                put(&mut block, 508, b"tar\0");
            }
            if self.random.one_in(odd_in) {
                self.oddity(&mut block, size);
            }
        }
        self.seal(&mut block, odd_in);
        self.out.extend(block);
    }

    fn oddity(&mut self, block: &mut [u8; 512], size: usize) {
        match self.random.below(4) {
            0 => {
                let spelled = self.random.pick(&parts(NUMBERS, b'|'));
                put(&mut block[..136], 124, &[0; 12]);
                put(&mut block[..136], 124, spelled);
            }
            1 => {
                let padded = [&[0x80, 0, 0, 0][..], &(size as u64).to_be_bytes()].concat();
                let spaced = format!("{size:>11o} ").into_bytes();
                let spelled = if self.random.one_in(2) {
                    padded
                } else {
                    spaced
                };
                put(block, 124, &spelled);
            }
            _ => {
                let field = &NUMBER_FIELDS[self.random.below(NUMBER_FIELDS.len())];
                let spelled = self.random.pick(&parts(NUMBERS, b'|'));
                block[field.clone()].fill(0);
                put(&mut block[..field.end], field.start, spelled);
            }
        }
    }

    /// Writes the checksum: of unsigned bytes, of signed ones as old tools did, or a wrong one.
    fn seal(&mut self, block: &mut [u8; 512], odd_in: usize) {
        block[148..156].fill(b' ');
        let unsigned: i64 = block.iter().map(|byte| i64::from(*byte)).sum();
        let signed: i64 = block.iter().map(|byte| i64::from(byte.cast_signed())).sum();
        let field = match self.random.below(odd_in.saturating_mul(8)) {
            0 => format!("{:06o}\0 ", unsigned + 1).into_bytes(),
            1 => [&[0x80, 0, 0, 0][..], &(unsigned as u32).to_be_bytes()].concat(),
            2..4 => format!("{:06o}\0 ", signed.max(0)).into_bytes(),
            4 => format!("{unsigned:>8o}").into_bytes(),
            _ => format!("{unsigned:06o}\0 ").into_bytes(),
        };
        put(block, 148, &field);
    }

    fn padded(&mut self, content: &[u8]) {
        self.out.extend(content);
        self.out.resize(self.out.len().next_multiple_of(512), 0);
    }

    fn end(&mut self) {
        let tail: &[u8] = match self.random.below(8) {
            0 => &[],
            1 => &[0; 512],
            2 if self.random.one_in(5) => &[0; 100],
            3 if self.random.one_in(5) => &[0; 700],
            4 => &[&[0; 1024][..], &[7; 600]].concat(),
            5 if self.random.one_in(4) => &[&[0; 512][..], &[7; 512]].concat(),
            _ => &[0; 1024],
        };
        self.out.extend(tail);
        if self.random.one_in(16) {
            let end = self.random.below(self.out.len() + 1);
            self.out.truncate(end);
        }
    }
}

/// Copies `bytes` to `at`, as many as there is space for.
fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    let space = &mut block[at..];
    let len = bytes.len().min(space.len());
    space[..len].copy_from_slice(&bytes[..len]);
}
