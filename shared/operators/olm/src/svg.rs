//! SVG images that a browser can draw at once. A few lines of references to references are millions
//! of elements, which would stop a page for minutes.

use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node, NodeId, ParsingOptions};

use crate::{IconKind, decode_base64};

/// Maximum number of nodes of a document. The largest real icon has 225 elements.
const NODES_MAX: u32 = 20_000;

/// Maximum number of elements that are drawn when each reference is followed. A browser draws a
/// thousand in some milliseconds.
const DRAWN_MAX: usize = 10_000;

/// Maximum depth of elements, with those that are referred to.
const DEPTH_MAX: usize = 200;

/// Parts of a style or of a value by which it could name elements or documents in other ways than
/// `#ID`: variables, escapes, style sheets, pictures.
const HIDING: &[&str] = &[
    "data:",
    "@import",
    "var(",
    "\\",
    "image(",
    "image-set(",
    "src(",
];

/// Elements that are not drawn themselves.
const UNDRAWN: &[&str] = &[
    "clipPath", "defs", "filter", "mask", "pattern", "stop", "style", "symbol", "title",
];

/// Returns true if a browser can draw the bytes of an SVG image at once: if it has few elements,
/// also after all references to elements are followed, and no other document in it.
pub(crate) fn is_drawable(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let options = ParsingOptions {
        allow_dtd: true,
        nodes_limit: NODES_MAX,
        ..ParsingOptions::default()
    };
    let Ok(document) = Document::parse_with_options(text, options) else {
        return false;
    };
    let Some(references) = References::read(&document) else {
        return false;
    };
    let mut drawing = Drawing {
        references,
        drawn: 0,
        open: HashSet::new(),
    };
    drawing.draw(document.root_element())
}

/// Elements to which other elements of a document refer by their `id`.
#[derive(Default)]
struct References<'d> {
    by_id: HashMap<&'d str, Node<'d, 'd>>,
    /// Elements to which an element refers by itself.
    of: HashMap<NodeId, Vec<Node<'d, 'd>>>,
    /// Elements to which any element may refer: by a style sheet, or by what is inherited.
    of_all: Vec<Node<'d, 'd>>,
}

impl<'d> References<'d> {
    /// Reads the references of a document. Returns `None` if it may have others.
    fn read(document: &'d Document<'d>) -> Option<Self> {
        let mut references = Self::default();
        let elements = || document.descendants().filter(Node::is_element);
        for node in elements() {
            // A gradient draws no elements.
            if let Some(id) = node.attribute("id")
                && !node.tag_name().name().ends_with("Gradient")
            {
                references.by_id.entry(id).or_insert(node);
            }
        }
        // It can name a style sheet.
        if document.descendants().any(|node| node.is_pi()) {
            return None;
        }
        for node in elements() {
            match node.tag_name().name() {
                // A marker is drawn at each point of a path, and the other holds HTML.
                "marker" | "foreignObject" => return None,
                "style" => {
                    let texts = node.descendants().filter(Node::is_text);
                    let text: String = texts.filter_map(|text| text.text()).collect();
                    let found = references.find(&text)?;
                    references.of_all.extend(found);
                }
                _ => {}
            }
            for attribute in node.attributes() {
                let value = attribute.value().trim();
                if attribute.name() == "href" && is_small_picture(value) {
                    continue;
                }
                let found = references.find(value)?;
                let is_inherited =
                    value.contains("inherit") || found.iter().any(|node| is_fill(*node));
                if is_inherited && attribute.name() != "href" {
                    references.of_all.extend(found);
                } else {
                    references.of.entry(node.id()).or_default().extend(found);
                }
            }
        }
        // One that inherits may inherit any.
        let inherits = elements().any(|node| {
            let values = node.attributes().map(|attribute| attribute.value());
            let mut texts = values.chain(node.text());
            texts.any(|text| text.contains("inherit"))
        });
        if inherits {
            let own = references.of.values().flatten().copied();
            let own: Vec<Node<'_, '_>> = own.collect();
            references.of_all.extend(own);
        }
        let mut seen = HashSet::new();
        references.of_all.retain(|node| seen.insert(node.id()));
        Some(references)
    }

    /// Returns the elements that a value or a style sheet names as `#ID`. Returns `None` if it may
    /// name others.
    fn find(&self, text: &str) -> Option<Vec<Node<'d, 'd>>> {
        // Browsers leave out spaces inside of URLs, and the case of functions does not matter.
        let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        // A font has no elements.
        let packed = packed.to_ascii_lowercase().replace("data:font/", "");
        if HIDING.iter().any(|part| packed.contains(part)) {
            return None;
        }
        let mut found = Vec::new();
        for name in text.split('#').skip(1) {
            let end = name.find(|c: char| c.is_whitespace() || ")'\";,<>{}".contains(c));
            let name = &name[..end.unwrap_or(name.len())];
            if name.contains('%') {
                return None;
            }
            found.extend(self.by_id.get(name).copied());
        }
        Some(found)
    }
}

/// Returns true for what is drawn by a property that elements inherit.
fn is_fill(node: Node<'_, '_>) -> bool {
    node.tag_name().name() == "pattern"
}

/// A walk over the elements that a browser draws.
struct Drawing<'d> {
    references: References<'d>,
    drawn: usize,
    /// Elements that are being drawn: a browser does not follow a circle.
    open: HashSet<NodeId>,
}

impl<'d> Drawing<'d> {
    /// Counts an element with all that is drawn for it. Returns false if that is too much.
    fn draw(&mut self, node: Node<'d, 'd>) -> bool {
        self.drawn += 1;
        if self.drawn > DRAWN_MAX || self.open.len() >= DEPTH_MAX {
            return false;
        }
        if !self.open.insert(node.id()) {
            return true;
        }
        let own = self.references.of.get(&node.id());
        let mut parts = own.cloned().unwrap_or_default();
        if !UNDRAWN.contains(&node.tag_name().name()) {
            parts.extend_from_slice(&self.references.of_all);
        }
        parts.extend(node.children().filter(Node::is_element));
        let is_drawn = parts.into_iter().all(|part| self.draw(part));
        self.open.remove(&node.id());
        is_drawn
    }
}

/// Returns true for the `data:` URL of a picture without elements and with few pixels.
fn is_small_picture(url: &str) -> bool {
    let Some(coded) = url.strip_prefix("data:image/") else {
        return false;
    };
    let Some((kind, data)) = coded.split_once(";base64,") else {
        return false;
    };
    let data: String = data.split_whitespace().collect();
    let bytes = decode_base64(&data).unwrap_or_default();
    let found = IconKind::of(&bytes).filter(|found| *found != IconKind::Svg);
    let is_said = ["png", "jpeg", "jpg", "gif", "webp"].contains(&kind);
    is_said && found.is_some_and(|found| found.has_few_pixels(&bytes))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use rstest::rstest;

    use super::*;

    fn svg(content: &str) -> String {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{content}</svg>"#
        )
    }

    /// Returns definitions of which each is drawn three times in the next one: 3^levels at the end.
    fn levels(count: usize, element: &str, part: &str) -> String {
        let level = |at: usize| {
            let part = part.replace("ID", &format!("a{}", at.wrapping_sub(1)));
            format!(r#"<{element} id="a{at}">{}</{element}>"#, part.repeat(3))
        };
        let last = part.replace("ID", &format!("a{}", count - 1));
        (0..count).map(level).collect::<String>() + &last
    }

    #[rstest]
    #[case::uses("g", r##"<use xlink:href="#ID"/>"##)]
    #[case::uses_without_prefix("symbol", r##"<use href="#ID"/>"##)]
    #[case::masks("mask", r##"<rect mask="url(#ID)"/>"##)]
    #[case::quoted("clipPath", r##"<rect clip-path="url( '#ID' )"/>"##)]
    #[case::styled("clipPath", r##"<rect style="clip-path:url(#ID)"/>"##)]
    #[case::patterns("pattern", r##"<rect fill="url(#ID)"/>"##)]
    #[case::inherited_pattern("pattern", r##"<g fill="url(#ID)"><rect/></g>"##)]
    #[case::filters("g", r##"<filter><feImage href="#ID"/></filter>"##)]
    #[case::animated("mask", r##"<rect><set attributeName="mask" to="url(#ID)"/></rect>"##)]
    fn references_to_references_are_counted(#[case] element: &str, #[case] part: &str) {
        assert!(is_drawable(svg(&levels(2, element, part)).as_bytes()));
        assert!(!is_drawable(svg(&levels(12, element, part)).as_bytes()));
    }

    #[test]
    fn style_sheet_counts_for_each_element() {
        let masks = |count: usize| {
            let masks =
                (0..count).map(|at| format!(r#"<mask id="m{at}"><rect class="c"/></mask>"#));
            let rules = (0..count).map(|at| format!(".c{at}{{mask:url(<!---->#<!---->m{at})}}"));
            let style = format!("<style>{}</style>", rules.collect::<String>());
            svg(&(style + &masks.collect::<String>() + "<rect/>"))
        };
        assert!(is_drawable(masks(4).as_bytes()));
        assert!(!is_drawable(masks(14).as_bytes()));
    }

    #[test]
    fn exactly_ten_thousand_elements_are_drawable() {
        let rects = |count: usize| svg(&"<rect/>".repeat(count));
        assert!(is_drawable(rects(DRAWN_MAX - 1).as_bytes()));
        assert!(!is_drawable(rects(DRAWN_MAX).as_bytes()));
        let nested = |depth: usize| svg(&("<g>".repeat(depth) + &"</g>".repeat(depth)));
        assert!(is_drawable(nested(DEPTH_MAX - 1).as_bytes()));
        for depth in [DEPTH_MAX, 100_000] {
            assert!(!is_drawable(nested(depth).as_bytes()));
        }
    }

    #[test]
    fn circles_are_not_followed() {
        let circle =
            r##"<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/><use href="#b"/></g>"##;
        assert!(is_drawable(svg(circle).as_bytes()));
        let way_back = levels(12, "g", r##"<use href="#ID"/>"##);
        let way_back = way_back.replace(r#"<g id="a0">"#, r##"<g id="a0"><use href="#a11"/>"##);
        assert!(!is_drawable(svg(&way_back).as_bytes()));
    }

    #[test]
    fn icon_that_hides_references_is_refused() {
        let inner = STANDARD.encode(svg(""));
        for content in [
            format!(r#"<image href="data:image/svg+xml;base64,{inner}"/>"#),
            format!(r#"<image href="DATA:image/svg+xml;base64,{inner}"/>"#),
            format!(r#"<image href="da&#9;ta:image/svg+xml;base64,{inner}"/>"#),
            format!(r#"<image href="data:image/png;base64,{inner}"/>"#),
            r#"<image href="data:image/svg+xml,%3Csvg/%3E"/>"#.to_owned(),
            r#"<style>@import "a.css";</style>"#.to_owned(),
            r#"<style>rect{fill:url(d<!-- -->ata:image/svg+xml,a)}</style>"#.to_owned(),
            r##"<g style="--a:url(#a)"><rect mask="VAR(--a)"/></g>"##.to_owned(),
            r#"<rect mask="url(\23 a)"/>"#.to_owned(),
            r##"<rect mask="url(#%61)"/>"##.to_owned(),
            r#"<marker id="a"/>"#.to_owned(),
            "<foreignObject/>".to_owned(),
            "<g>".to_owned(),
        ] {
            assert!(!is_drawable(svg(&content).as_bytes()), "{content}");
        }
        let sheet = format!(r#"<?xml-stylesheet href="data:text/css,a"?>{}"#, svg(""));
        assert!(!is_drawable(sheet.as_bytes()));
        assert!(!is_drawable(b"\xff<svg/>"));
        let entities = r#"<!DOCTYPE svg [<!ENTITY a "<g/><g/>"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
            <!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;">]>"#;
        let entities = format!("{entities}{}", svg("&e;"));
        assert!(!is_drawable(entities.as_bytes()));
    }

    #[test]
    fn icon_of_a_drawing_program_is_drawable() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10");
        let drawn = format!(
            r##"<?xml version="1.0" encoding="utf-8"?>
            <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd" [<!ENTITY ns_svg "http://www.w3.org/2000/svg">]>
            <svg xmlns="&ns_svg;" xmlns:xlink="http://www.w3.org/1999/xlink" style="enable-background:new 0 0 9 9">
            <style type="text/css"><![CDATA[.st0{{fill:url(#b);}} .st1{{fill:#1d1d1b;font-family:'Arial'}}]]></style>
            <linearGradient id="a"><stop offset="0"/></linearGradient><linearGradient id="b" xlink:href="#a"/>
            <defs><clipPath id="c"><path d="M0 0h9"/></clipPath></defs>
            <style>@font-face{{src:url(data:font/ttf;base64,AAEA)}}</style>
            <g clip-path="url(#c)"><path class="st0" fill="#fff"/><use xlink:href="#c"/></g>
            <image xlink:href="data:image/png;base64,{png}"/><a href="https://example.com/"><text>a</text></a></svg>"##
        );
        assert!(is_drawable(drawn.as_bytes()));
        let large = STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x10\0\0\0\x10\x01");
        assert!(!is_drawable(drawn.replace(&png, &large).as_bytes()));
    }

    proptest::proptest! {
        #[test]
        fn is_drawable_never_panics(text in "(<|>|/|&|;|#|a|g|id=\"|url\\(|\\PC){0,60}") {
            is_drawable(svg(&text).as_bytes());
            is_drawable(text.as_bytes());
        }
    }
}
