//! Text that may stand in a page.

use std::fmt;

/// Shows a text with what HTML gives a meaning written out, for element contents and quoted attributes.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

/// `value` as JSON that may stand in a `script` element: no text in it can end the element.
pub(super) fn json(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).expect("plain data has a JSON form");
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A number with its thousands set apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_become_markup() {
        assert_eq!(Escaped("<b a='\"'>&").to_string(), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert!(!json(&"</script><!--").contains('<'));
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(123_456), "123\u{202f}456");
        assert_eq!(grouped(1_000), "1\u{202f}000");
    }
}
