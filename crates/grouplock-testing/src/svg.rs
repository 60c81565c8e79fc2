//! A small writer of pictures that are readable on light and on dark. The lab's report has its own
//! pictures: they are parts of a page that reacts to the mouse, and the lab is published, unlike
//! this crate.

use core::fmt::{self, Write as _};

/// A colour. The style sheet has it for light and for dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Text, and important lines.
    Text,
    /// Explanations.
    Soft,
    /// The grid.
    Grid,
    /// For one of the compared things, as are the others.
    Red,
    /// Another.
    Blue,
    /// Another.
    Green,
    /// Another.
    Grey,
    /// Another.
    Violet,
    /// Another.
    Teal,
    /// Another.
    Amber,
}

impl Ink {
    const ALL: [(Ink, &'static str, &'static str, &'static str); 10] = [
        (Ink::Text, "text", "#1f2328", "#e6edf3"),
        (Ink::Soft, "soft", "#59636e", "#9198a1"),
        (Ink::Grid, "grid", "#d8dee4", "#30363d"),
        (Ink::Red, "red", "#cf222e", "#ff7b72"),
        (Ink::Blue, "blue", "#0969da", "#58a6ff"),
        (Ink::Green, "green", "#1a7f37", "#3fb950"),
        (Ink::Grey, "grey", "#6e7781", "#8b949e"),
        (Ink::Violet, "violet", "#8250df", "#bc8cff"),
        (Ink::Teal, "teal", "#0e7c86", "#39c5cf"),
        (Ink::Amber, "amber", "#9a6700", "#d29922"),
    ];

    fn class(self) -> &'static str {
        let known = Ink::ALL.iter().find(|(ink, ..)| *ink == self);
        known.map_or("text", |(_, class, ..)| class)
    }
}

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A picture. Displayed, it is a complete file.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    /// Family and size.
    font: (&'static str, u8),
    style: String,
    body: String,
}

impl Svg {
    /// An empty picture. Screen readers read the title.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let (title, font) = (title.to_owned(), ("system-ui, sans-serif", 12));
        Svg { width, height, title, font, style: String::new(), body: String::new() }
    }

    /// Uses letters and spaces of one width, as in a terminal.
    #[must_use]
    pub fn monospaced(mut self) -> Self {
        self.font = ("ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", 14);
        self.style.push_str("text { white-space: pre }\n");
        self
    }

    /// Adds to the style sheet.
    pub fn style(&mut self, rules: &str) {
        self.style.push_str(rules);
    }

    /// Adds what `draw` draws, as a group of this class.
    pub fn group(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        self.add(format_args!("<g class=\"{}\">", escaped(class)));
        draw(self);
        self.add(format_args!("</g>"));
    }

    fn add(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    /// A text of one line.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, ink: Ink, strong: bool, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if strong { " font-weight=\"600\"" } else { "" };
        let (class, text) = (ink.class(), escaped(text));
        self.add(format_args!(
            "<text class=\"f-{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{weight}>{text}</text>"
        ));
    }

    /// A line through `points`.
    pub fn line(&mut self, points: &[(f64, f64)], ink: Ink, width: f64, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        self.add(format_args!(
            "<polyline class=\"s-{}\" fill=\"none\" stroke-width=\"{width}\"{dashes} points=\"{}\"/>",
            ink.class(),
            points.join(" ")
        ));
    }

    /// A filled dot.
    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, ink: Ink) {
        self.add(format_args!(
            "<circle class=\"f-{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>",
            ink.class()
        ));
    }

    /// An empty ring.
    pub fn ring(&mut self, (x, y): (f64, f64), radius: f64, ink: Ink) {
        self.add(format_args!(
            "<circle class=\"s-{}\" fill=\"none\" stroke-width=\"1.5\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>",
            ink.class()
        ));
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Svg { width, height, title, font, style, body } = self;
        let (title, (family, size)) = (escaped(title), font);
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"{title}\" font-family=\"{family}\" font-size=\"{size}\">"
        )?;
        writeln!(f, "<title>{title}</title>\n<style>\n.page {{ fill: #ffffff }}")?;
        for (_, class, light, _) in Ink::ALL {
            writeln!(f, ".f-{class} {{ fill: {light} }} .s-{class} {{ stroke: {light} }}")?;
        }
        writeln!(f, "@media (prefers-color-scheme: dark) {{\n.page {{ fill: #0d1117 }}")?;
        for (_, class, _, dark) in Ink::ALL {
            writeln!(f, ".f-{class} {{ fill: {dark} }} .s-{class} {{ stroke: {dark} }}")?;
        }
        writeln!(f, "}}\n{style}</style>")?;
        writeln!(f, "<rect class=\"page\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>")?;
        writeln!(f, "{body}</svg>")
    }
}

/// `text`, escaped for an element or an attribute.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Whether every element of `text` is closed where it must be: enough of XML for what [`Svg`]
/// writes.
///
/// # Errors
/// What is wrong, for people.
pub fn well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        if before.contains('>') {
            return Err(format!("a bracket that closes nothing in `{before}`"));
        }
        if open.is_empty() && !before.trim().is_empty() {
            return Err(format!("`{before}` outside of everything"));
        }
        let Some((tag, after)) = after.split_once('>') else {
            return Err(format!("`<{after}` never ends"));
        };
        if tag.matches('"').count() % 2 == 1 {
            return Err(format!("a quote is missing in `<{tag}>`"));
        }
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return Err(format!("`</{closed}>` closes something else"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = after;
    }
    match open.pop() {
        Some(name) => Err(format!("`<{name}>` is never closed")),
        None if rest.trim().is_empty() => Ok(()),
        None => Err(format!("`{rest}` outside of everything")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_well_formed_whatever_it_says() {
        let mut svg = Svg::new(100.0, 50.0, "a < b & \"c\"");
        svg.text((1.0, 2.0), Anchor::End, Ink::Red, true, "</text> & <g>");
        svg.line(&[(0.0, 0.0), (1.0, 1.0)], Ink::Grid, 1.0, true);
        svg.dot((1.0, 1.0), 2.0, Ink::Text);
        svg.ring((1.0, 1.0), 2.0, Ink::Amber);
        svg.group("a", |svg| svg.dot((1.0, 1.0), 2.0, Ink::Text));
        svg.style(".a { opacity: 0 }\n");
        let text = svg.to_string();
        assert_eq!(well_formed(&text), Ok(()));
        assert!(text.contains("&lt;/text&gt; &amp; &lt;g&gt;"));
        assert!(text.contains("prefers-color-scheme: dark"));
        assert!(
            text.contains(".a { opacity: 0 }\n</style>")
                && text.contains("<g class=\"a\">\n<circle")
        );
    }

    #[test]
    fn what_is_not_well_formed_is_noticed() {
        for wrong in
            ["<a>", "<a></b>", "</a>", "<a><b></a></b>", "<a", "<a x=\"1/>", "x<a/>", "<a/>x"]
        {
            assert!(well_formed(wrong).is_err(), "{wrong}");
        }
        assert_eq!(well_formed("<a x=\"1\"><b/> x </a>\n"), Ok(()));
    }
}
