//! Amounts of resources that are written differently and are the same.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Largest relative difference between two ways to write one amount: those of `f64` are around 1e-16.
const SAME: f64 = 1e-9;

/// Suffixes and what they multiply by. `e` and `E` with digits are exponents and handled by the number itself.
const SUFFIXES: [(&str, f64); 14] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
];

pub fn same(a: &Quantity, b: &Quantity) -> bool {
    match (amount(&a.0), amount(&b.0)) {
        (Some(x), Some(y)) => (x - y).abs() <= SAME * x.abs().max(y.abs()),
        _ => a == b,
    }
}

fn amount(text: &str) -> Option<f64> {
    if let Ok(plain) = text.parse() {
        return Some(plain);
    }
    let (number, factor) = SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)))
        .or_else(|| Some((text.strip_suffix('E')?, 1e18)))?;
    number.parse::<f64>().ok().map(|n| n * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_amount_can_be_written_in_several_ways() {
        let same = |a: &str, b: &str| same(&Quantity(a.into()), &Quantity(b.into()));
        for (a, b) in [("1024Mi", "1Gi"), ("0.3", "300m"), ("1e3", "1k"), ("2E", "2000P"), ("1", "1000m")] {
            assert!(same(a, b), "{a} {b}");
        }
        for (a, b) in [("512Mi", "512M"), ("1", "1m"), ("odd", "strange")] {
            assert!(!same(a, b), "{a} {b}");
        }
    }
}
