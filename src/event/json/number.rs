//! Numbers as JSON spells them: exact integers out of any spelling, and what overflows a double.

/// Whether the number's text is beyond a double (J). `text` is a checked JSON number.
pub(crate) fn overflows(text: &[u8]) -> bool {
    !std::str::from_utf8(text).ok().and_then(|t| t.parse::<f64>().ok()).is_some_and(f64::is_finite)
}

/// The exact integer that a JSON number denotes, sign and magnitude: `26`, `26.0`, `2.6e1` and `260e-1` are
/// all 26. `None` when it has a fraction or does not fit.
pub(crate) fn exact_integer(text: &str) -> Option<(bool, u64)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return Some((negative, digits.parse().ok()?));
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let significant = whole.bytes().chain(fraction.bytes()).skip_while(|b| *b == b'0');
    // The digits of `whole ++ fraction` stand for an integer times ten to the `shift`.
    let mut shift = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let mut all: Vec<u8> = significant.collect();
    while all.last() == Some(&b'0') {
        all.pop();
        shift = shift.checked_add(1)?;
    }
    if all.is_empty() {
        return Some((negative, 0));
    }
    let shift = u32::try_from(shift).ok()?;
    let digits: u64 = std::str::from_utf8(&all).ok()?.parse().ok()?;
    Some((negative, digits.checked_mul(10_u64.checked_pow(shift)?)?))
}

/// An exponent, clamped: beyond a few billions nothing but zero is an integer that fits, and zero does not
/// care.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = digits.trim_start_matches('0');
    let size: i64 = if size.is_empty() {
        0
    } else if size.len() > 15 {
        // Further than any text is long, so it cannot be cancelled by digits of the mantissa.
        1_000_000_000_000_000
    } else {
        size.parse().ok()?
    };
    Some(if text.starts_with('-') { -size } else { size })
}

/// The number as an unsigned integer, where it is one exactly.
pub(crate) fn as_u64(text: &str) -> Option<u64> {
    match exact_integer(text)? {
        (false, n) | (true, n @ 0) => Some(n),
        _ => None,
    }
}

/// The number as a signed integer, where it is one exactly.
pub(crate) fn as_i64(text: &str) -> Option<i64> {
    match exact_integer(text)? {
        (false, n) => i64::try_from(n).ok(),
        (true, n) => 0_i64.checked_sub_unsigned(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_integer_has_many_spellings() {
        for text in ["26", "26.0", "2.6e1", "260e-1", "0.26E+2", "2600.00e-2", "0.0026e0000000000000000004"] {
            assert_eq!(as_u64(text), Some(26), "{text}");
            assert_eq!(as_i64(&format!("-{text}")), Some(-26), "{text}");
        }
        for text in ["0", "-0", "0.0", "0e999999999999999999999", "-0.000E-5"] {
            assert_eq!(as_u64(text), Some(0), "{text}");
        }
    }

    #[test]
    fn fractions_and_excess_are_no_integers() {
        for text in ["26.5", "1e-1", "260e-2", "18446744073709551616", "1e20", "1e999999999999999999999"] {
            assert_eq!(as_u64(text), None, "{text}");
        }
        assert_eq!(as_u64("18446744073709551615"), Some(u64::MAX));
        assert_eq!(as_u64("1844674407370955161.5e1"), Some(u64::MAX));
        assert_eq!(as_u64("-1"), None);
        assert_eq!(as_i64("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(as_i64("9223372036854775808"), None);
    }

    #[test]
    fn overflow_is_where_a_double_ends() {
        assert!(!overflows(b"1.7976931348623157e308"));
        assert!(overflows(b"1.7976931348623159e308"));
        assert!(!overflows(b"1e-400"));
        assert!(overflows(format!("-1{}", "0".repeat(309)).as_bytes()));
    }
}
