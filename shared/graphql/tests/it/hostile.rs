//! Queries that are made to cost time or stack. Each must end soon, here without optimisation.

use std::time::{Duration, Instant};

use rstest::rstest;

use crate::catalog::answer;

/// Maximum time for one query. Most take a few milliseconds.
const TIME_MAX: Duration = Duration::from_secs(5);

fn many(count: usize, text: &str) -> String {
    text.repeat(count)
}

fn numbered(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

fn fragments(count: usize, spreads: usize) -> String {
    numbered(count, |at| {
        let next = format!("...f{} ", at + 1);
        format!("fragment f{at} on Query{{{}}} ", next.repeat(spreads))
    })
}

#[rstest]
#[case::braces(many(50_000, "{"))]
#[case::balanced_braces(many(30, "{a") + &many(30, "}"))]
#[case::brackets(format!("{{a(b:{}", many(90_000, "[")))]
#[case::objects(format!("{{a(b:{}", many(30_000, "{b:")))]
#[case::list_types(format!("query($a:{}", many(90_000, "[")))]
#[case::nested_values(format!("{{olmbundles(limit:{}1{}){{name}}}}", many(35, "["), many(35, "]")))]
#[case::aliases(format!("{{{}}}", numbered(7_000, |at| format!("a{at}:__typename "))))]
#[case::type_names(format!("{{{}}}", many(7_000, "__typename ")))]
#[case::directives(format!("{{__typename{}}}", many(2_800, "@include(if:true)")))]
#[case::unknown_directives(format!("{{__typename{}}}", many(7_000, "@a ")))]
#[case::arguments(format!("{{olmbundles({}){{name}}}}", many(4_500, "limit:1 ")))]
#[case::unknown_arguments(format!("{{olmbundles({}){{name}}}}", numbered(4_500, |at| format!("a{at}:1 "))))]
#[case::unknown_fields(format!("{{{}}}", numbered(499, |at| format!("a{at} "))))]
#[case::unused_variables(format!("query({}){{__typename}}", numbered(3_500, |at| format!("$a{at}:Int "))))]
#[case::cycle("{...f0} ".to_owned() + &fragments(1, 1) + "fragment f1 on Query{...f0}")]
#[case::chain("{...f0} ".to_owned() + &fragments(900, 1) + "fragment f900 on Query{__typename}")]
#[case::unused_chain("{__typename} ".to_owned() + &fragments(900, 1) + "fragment f900 on Query{__typename}")]
#[case::exponential("{...f0} ".to_owned() + &fragments(9, 30) + "fragment f9 on Query{__typename}")]
#[case::exponential_in_order(
    format!("{{{}}} ", numbered(26, |at| format!("...f{} ", 25 - at))) + &fragments(25, 8) + "fragment f25 on Query{__typename}"
)]
#[case::overlapping_lists(format!("{{{}}}", many(100, "olmbundles{name package properties{type value}} ")))]
#[case::overlapping_conflicts(format!("{{{}}}", numbered(240, |at| format!("olmbundles(limit:{at}){{name}} "))))]
#[case::introspection(
    "{__schema{types{fields{type{ofType{fields{type{ofType{fields{name}}}}}}}}}}".to_owned()
)]
#[case::introspection_again(format!("{{{}}}", many(40, "__schema{types{fields{name type{name}}}} ")))]
#[case::many_operations(numbered(2_000, |at| format!("query a{at}{{__typename}} ")))]
#[case::string(format!("{{olmbundles(name:\"{}\"){{name}}}}", many(90_000, "a")))]
#[case::escapes(format!("{{olmbundles(name:\"{}\"){{name}}}}", many(15_000, "\\u0041")))]
#[case::block_string(format!("{{olmbundles(name:\"\"\"{}\"\"\"){{name}}}}", many(45_000, "\n ")))]
#[case::open_block_string(format!("{{olmbundles(name:{}", many(30_000, "\"\"\"")))]
#[case::comments(many(30_000, "#\n") + "{__typename}")]
#[case::white_space(many(90_000, ",") + "{__typename}")]
#[case::number(format!("{{olmbundles(limit:{}){{name}}}}", many(90_000, "9")))]
#[case::bytes(many(20_000, "\u{feff}\u{0}"))]
#[case::punctuators(many(33_000, "..."))]
#[tokio::test]
async fn query_ends_soon(#[case] query: String) {
    let query = &query[..query.floor_char_boundary(100_000)];
    let started = Instant::now();
    let found = answer(query).await;
    let took = started.elapsed();
    assert!(took < TIME_MAX, "{took:?} for {query:.80}");
    let size = found.to_string().len();
    assert!(size < 8 << 20, "{size} bytes for {query:.80}");
}
