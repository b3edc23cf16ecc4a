//! Names that catalogd's GraphQL gives to the keys of Metas and to schemas.
//!
//! ```text
//! key            field            schema       type         root field
//! defaultChannel defaultChannel   olm.bundle   OlmBundle    olmbundles
//! image_type     imageType        my-thing.v2  MyThingV2    mythingv2s
//! CSV            csv              9lives       Lives        9livess, which GraphQL does not allow
//! 2nd            field_2nd
//! ```

/// Returns the name of the field for a key of an object: camel case, without anything but ASCII letters and digits, and with
/// `field_` before what begins with no letter. It is a name that GraphQL allows, for each key.
pub fn field_name(key: &str) -> String {
    if key.is_empty() {
        return "value".to_owned();
    }
    let mut parts = words(key);
    let mut name = String::with_capacity(key.len());
    if let Some(first) = parts.next() {
        if first.bytes().any(|byte| byte.is_ascii_lowercase()) {
            push_with_first(&mut name, first, |first| first.to_ascii_lowercase(), |rest| rest);
        } else {
            name.push_str(&first.to_ascii_lowercase());
        }
    }
    for part in parts {
        push_capitalized(&mut name, part);
    }
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "field_");
    }
    name
}

/// Returns the name of the type of a schema, or a part of it for a field: each word with a capital. It begins with a digit, as
/// GraphQL does not allow, if a separator and a digit begin the schema.
pub fn type_name(schema: &str) -> String {
    let mut name = String::with_capacity(schema.len());
    let letters = schema.trim_start_matches(|first: char| first.is_ascii_digit());
    // Here an underscore separates like any other character.
    for part in words(letters) {
        push_capitalized(&mut name, part);
    }
    if name.is_empty() {
        name.push_str("Unknown");
    }
    name
}

/// Returns the field of the root type that lists the Metas of a schema. It begins with a digit, as GraphQL does not allow, if
/// the first letter or digit of the schema is one.
pub fn query_field(schema: &str) -> String {
    let letters = schema.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).chain(['s']).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
}

fn push_capitalized(name: &mut String, part: &str) {
    push_with_first(
        name,
        part,
        |first| first.to_ascii_uppercase(),
        |rest| rest.to_ascii_lowercase(),
    );
}

fn push_with_first(name: &mut String, part: &str, of_first: impl Fn(char) -> char, of_rest: impl Fn(char) -> char) {
    let mut letters = part.chars();
    name.extend(letters.next().map(of_first));
    name.extend(letters.map(of_rest));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::empty("", "value")]
    #[case::plain("defaultChannel", "defaultChannel")]
    #[case::upper("CSV", "csv")]
    #[case::one_letter("X", "x")]
    #[case::first_upper("RelatedImages", "relatedImages")]
    #[case::upper_then_lower("CSVName", "cSVName")]
    #[case::underscores("image_type", "imageType")]
    #[case::more_underscores("__a__b__", "aB")]
    #[case::rest_lowered("foo_BAR", "fooBar")]
    #[case::dots("olm.bundle.mediatype", "olmBundleMediatype")]
    #[case::dash("a-B-cD", "aBCd")]
    #[case::slash("operators.io/Name", "operatorsIoName")]
    #[case::digits("123", "field_123")]
    #[case::leading_digit("2nd", "field_2nd")]
    #[case::digits_apart("1_2x", "field_12x")]
    #[case::no_letters("...", "field_")]
    #[case::unicode("größe", "grE")]
    #[case::unicode_only("名前", "field_")]
    #[case::unicode_before("éa", "a")]
    #[case::upper_digits("V2", "v2")]
    #[case::digit_first_upper("2ND", "field_2nd")]
    #[case::digit_then_mixed("2Nd_x", "field_2NdX")]
    fn field_name_is_that_of_catalogd(#[case] key: &str, #[case] name: &str) {
        assert_eq!(field_name(key), name);
    }

    #[rstest]
    #[case("olm.bundle", "OlmBundle", "olmbundles")]
    #[case("olm.csv.metadata", "OlmCsvMetadata", "olmcsvmetadatas")]
    #[case("my-thing.V2", "MyThingV2", "mythingv2s")]
    #[case("relatedImages", "Relatedimages", "relatedimagess")]
    #[case("field_2nd", "Field2nd", "field2nds")]
    #[case("9lives", "Lives", "9livess")]
    #[case(".9lives", "9lives", "9livess")]
    #[case("12", "Unknown", "12s")]
    #[case("1.2", "2", "12s")]
    #[case("...", "Unknown", "s")]
    #[case("größe", "GrE", "gres")]
    #[case("名前", "Unknown", "s")]
    fn type_and_root_field_are_those_of_catalogd(
        #[case] schema: &str,
        #[case] of_type: &str,
        #[case] root_field: &str,
    ) {
        assert_eq!(type_name(schema), of_type);
        assert_eq!(query_field(schema), root_field);
    }

    proptest! {
        #[test]
        fn field_name_of_any_key_is_a_name_of_graphql(key in any::<String>()) {
            let name = field_name(&key);
            prop_assert!(name.starts_with(|first: char| first.is_ascii_alphabetic()));
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
            prop_assert!(!name.starts_with("__"));
        }
    }
}
