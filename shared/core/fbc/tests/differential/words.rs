//! Parts of YAML documents: scalars, keys, tags, escapes, indicators. Each list is one text, with a
//! `¦` between its parts.

use testkit::Random;

/// Returns one part of a list.
pub(crate) fn word(random: &mut Random, list: &'static str) -> &'static str {
    let at = random.below(list.split('¦').count());
    list.split('¦').nth(at).unwrap_or_default()
}

/// Plain scalars that look like another type, or nearly so.
pub(crate) const PLAIN: &str = "\
    true¦True¦TRUE¦tRue¦false¦False¦FALSE¦yes¦Yes¦YES¦yEs¦no¦No¦NO¦on¦On¦ON¦oN¦off¦Off¦OFF¦y¦Y¦n¦N¦null¦Null¦NULL¦\
    nULL¦~¦~a¦¦<<¦=¦0¦1¦-1¦+1¦-0¦+0¦00¦01¦07¦08¦0777¦-0777¦0o17¦0O17¦-0o17¦0o8¦0o¦0x10¦0X1f¦0xfG¦0x¦-0x10¦+0x1¦\
    0x-1¦0b101¦0B1¦0b2¦0b¦0b+1¦0b-1¦-0b11¦-0b-1¦1_000¦_1¦1_¦1__0¦0x_f¦0_7¦0b_1¦-_1¦+_1¦9007199254740991¦\
    9007199254740993¦9223372036854775807¦9223372036854775808¦-9223372036854775808¦-9223372036854775809¦\
    +9223372036854775808¦18446744073709551615¦18446744073709551616¦123456789012345678901234567890¦\
    -123456789012345678901234567890¦0xFFFFFFFFFFFFFFFF¦0x1FFFFFFFFFFFFFFFF¦01777777777777777777777¦\
    0777777777777777777777777¦0b1111111111111111111111111111111111111111111111111111111111111111¦--1¦+-1¦1 000¦\
    1,000¦00x1¦1.¦.5¦-.5¦+.5¦1.5¦1.50¦01.5¦1e3¦1E3¦1e+3¦1e-3¦1.e3¦.5e3¦1e¦1e+¦e1¦.e1¦1e400¦-1e400¦1e-400¦\
    1.7976931348623157e308¦5e-324¦1e20¦1e21¦1e22¦123456789.125¦0.1¦0.000001¦0.0000001¦1_0.5¦1.5_0¦.1_0¦._1¦1_e3¦\
    1e1_0¦-0.0¦0.0¦0x1p4¦0x1.8¦0x.8p1¦.inf¦.Inf¦.INF¦.iNf¦-.inf¦+.inf¦-.INF¦+.INF¦.nan¦.NaN¦.NAN¦-.nan¦inf¦-inf¦\
    nan¦NaN¦Infinity¦.¦..¦...a¦-.¦+.¦1.5.2¦1:30¦190:20:30¦1:30.5¦-1:30¦0:0¦2001-12-14¦2001-1-1¦\
    2001-12-14T21:59:43Z¦2001-12-14t21:59:43.10-05:00¦2001-12-14 21:59:43.10 -5¦2001-13-45¦2001-12-14 21:59:43¦\
    2001¦2001-¦20011214¦02001-12-14";

/// Plain scalars that are strings, and characters that mean something elsewhere.
pub(crate) const STRINGS: &str = "\
    a¦b¦text¦two words¦a:b¦a#b¦-a¦--¦?a¦:a¦::¦a - b¦a ? b¦a\\b¦a'b¦a\"b¦http://x/y?z=1#f¦é¦😀¦a\u{a0}b¦a&b¦a*b¦a!b¦\
    a|b¦a%b¦a@b¦a`b¦~/a¦=a¦<a>¦a=¦$a¦^a¦(a)¦;a¦/a¦\\a¦_a¦.a¦+a¦x-y_z¦a  b¦\u{3b1}\u{3b2}¦a\u{7f}¦\u{fffd}";

/// Plain scalars that are no scalars in most places.
pub(crate) const BROKEN: &str = "\
    a: b¦a:¦:¦-¦?¦- a¦? a¦@a¦`a¦%a¦&¦*¦!¦|¦>¦a # b¦#a¦a,b¦a]b¦a}b¦a[b¦a{b¦[a¦{a¦]¦}¦,¦'a¦\"a¦a\tb¦a\t# b¦---¦...¦\
    --- a¦'a' b¦\"a\" b¦\u{feff}a¦a\u{feff}b¦a\u{85}b¦a\u{2028}b¦a\u{2029} b¦a\u{1}b¦a\u{1b}b¦*a b¦&a &b c¦*zz";

/// Keys that are common, and those with a meaning at the top level. Equal ones have one type: of
/// `1` and `'1'` in one mapping, Go takes either.
pub(crate) const KEYS: &str = "\
    a¦b¦c¦d¦a¦b¦c¦d¦v¦w¦x¦z¦key with space¦k-1¦é¦'q'¦\"q\"¦'it''s'¦\"a\\tb\"¦a.b/c¦schema¦Name¦NAME¦1¦0x1¦01¦-1¦\
    2.5¦1e3¦1e7¦.5¦true¦yes¦off¦n¦2001-12-14¦\"<<\"¦=¦9007199254740993¦9223372036854775807¦0b1¦1_0¦\
    100000.0¦0.00001¦1234567.8¦3.4e38¦1e39";

/// Keys that are refused, or need more than a colon.
pub(crate) const ODD_KEYS: &str = "\
    ¦~¦null¦.nan¦18446744073709551615¦1e400¦[a]¦{a: b}¦[]¦? a\n¦!!str 5¦!!int \"6\"¦!!null ''¦!!binary aGk=¦\
    !!float 7¦!!bool \"yes\"¦! 8¦!x 9¦&k a¦&k 1¦*a ¦*k ¦a:¦-¦?¦a b: c¦? [a]\n¦? |\n  a\n¦? - a\n¦\"a\nb\"¦a\nb¦\
    !!merge <<¦! <<¦!!str <<¦&m <<";

/// Tags, known, local, and malformed ones.
pub(crate) const TAGS: &str = "\
    !!str¦!!str¦!!int¦!!float¦!!bool¦!!null¦!!binary¦!!timestamp¦!!timestamp¦!!merge¦!¦!local¦!!map¦!!seq¦!!set¦!!omap¦\
    !!unknown¦!<tag:yaml.org,2002:str>¦!<tag:yaml.org,2002:int>¦!<x>¦!e!x¦!!s%74r¦!a%20b¦!a,b¦!a,b¦!<¦!!";

/// Values that some tag fits.
pub(crate) const TAGGED: &str = "\
    1¦\"1\"¦'1'¦1.5¦'1.5'¦true¦\"yes\"¦~¦''¦aGk=¦\"aGk=\"¦aGk¦a¦//8=¦2001-12-14¦2001-12-14x¦'2001-12-14'¦0x10¦\"0x10\"¦\
    18446744073709551615¦1e3¦|\n  1\n¦>-\n  aGk=\n¦<<¦.inf";

/// Parts of double-quoted strings.
pub(crate) const ESCAPES: &str = "\
    a¦b ¦ c¦#¦ # d¦: ¦'¦é¦😀¦\u{a0}¦\t¦\\\\¦\\\"¦\\/¦\\n¦\\t¦\\r¦\\0¦\\a¦\\b¦\\e¦\\f¦\\v¦\\ ¦\\\t¦\\N¦\\_¦\\L¦\\P¦\
    \\x41¦\\xe9¦\\xFF¦\\u00e9¦\\u2028¦\\uFEFF¦\\U0001F600¦\\U0000000a";

/// Parts of double-quoted strings that are refused by one reader at least.
pub(crate) const ODD_ESCAPES: &str = "\
    \\ud83d\\ude00¦\\ud800¦\\udc00¦\\U00110000¦\\UFFFFFFFF¦\\x4¦\\xg1¦\\u12¦\\'¦\\q¦\\z¦\\1¦\u{85}¦\u{2028}¦\
    \u{feff}¦\u{1}¦\u{7f}¦\\\u{e9}";

/// Parts of single-quoted strings.
pub(crate) const QUOTED: &str = "\
    a¦b ¦ c¦''¦\"¦\\n¦\\¦ # d¦: ¦é¦😀¦[¦,¦- ¦*a¦&b¦%¦\t¦!";

/// Indicators of block scalars.
pub(crate) const INDICATORS: &str = "\
    |¦|¦|¦>¦>¦|-¦|+¦>-¦>+¦|2¦|1¦|4¦>2¦|2-¦|-2¦|+1¦>1+¦|9¦|0¦|10¦|--¦|+-¦|x¦| a¦|#a¦| # comment¦>\t¦|- ¦|-\t# c";

/// Lines of block scalars, without their indentation.
pub(crate) const LINES: &str = "\
    text¦a¦b¦¦¦  more¦ one more¦\ttab¦# no comment¦- a¦a: b¦trailing  ¦trailing\t¦'¦\"¦\\n¦é¦%a¦  ¦\t¦&a¦...¦---¦\
    {¦\u{2028}x¦x\u{85}";

/// Text that a mutation inserts.
pub(crate) const MUTATIONS: &str = "\
     ¦  ¦\n¦\t¦:¦: ¦-¦- ¦?¦? ¦&a ¦*a¦!¦|¦>¦'¦\"¦#¦ #¦,¦[¦]¦{¦}¦%¦\r¦\r\n¦\\¦<<: ¦a¦1¦\u{85}¦\u{2028}¦\u{feff}¦\
    \u{a0}¦---\n¦...\n¦\n---\n¦\n...\n¦\n\n";
