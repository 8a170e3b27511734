//! Boosted trees: sums of small decision trees over integers.
//!
//! Integer thresholds and leaves give the same sum on every machine. No tree is walked: each value rules out leaves of all
//! trees at once, and the first leaf that is left is reached. After `QuickScorer` (Lucchese and others, 2015), with the bits
//! of each interval of values computed beforehand.

/// Most trees, and most leaves of a tree.
const TREES: usize = 64;
const LEAVES: usize = u16::BITS as usize;

/// By tree: a bit for each leaf.
type Leaves = [u16; TREES];

/// Trees over features that the table names.
#[derive(Debug)]
pub struct Trees {
    features: Vec<Feature>,
    /// By tree: the values of its leaves.
    values: Vec<[i32; LEAVES]>,
}

/// The leaves that the values of a feature rule out.
#[derive(Debug)]
struct Feature {
    /// By value, up to the last threshold: number of thresholds that it reaches.
    reached: Vec<u16>,
    /// By that number: the leaves that are left.
    left: Vec<Leaves>,
}

/// A split: a value at or above the threshold rules out `leaves` of a tree, those on its left.
struct Split {
    feature: usize,
    threshold: u16,
    tree: usize,
    leaves: u16,
}

impl Trees {
    /// Parses a table of one node a line, in preorder: `feature < n` for a split, an integer for a leaf; ignores spaces
    /// around a line and lines that start with `#`. Returns `None` if it is not such a table.
    pub fn parse(table: &str, features: &[&str]) -> Option<Self> {
        let mut lines =
            table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        let (mut values, mut splits) = (Vec::new(), Vec::new());
        while lines.peek().is_some() {
            let mut leaves = Vec::new();
            read_node(&mut lines, features, values.len(), &mut leaves, &mut splits)?;
            leaves.resize(LEAVES, 0);
            values.push(leaves.try_into().ok()?);
        }
        splits.sort_by_key(|split: &Split| (split.feature, split.threshold));
        let feature = |feature| {
            // Below all thresholds every leaf is left.
            let mut all = Feature { reached: Vec::new(), left: vec![[u16::MAX; TREES]] };
            let splits: Vec<&Split> = splits.iter().filter(|split| split.feature == feature).collect();
            for same in splits.chunk_by(|one, other| one.threshold == other.threshold) {
                all.reached.resize(usize::from(same[0].threshold), u16::try_from(all.left.len() - 1).ok()?);
                let mut left = *all.left.last()?;
                for split in same {
                    left[split.tree] &= !split.leaves;
                }
                all.left.push(left);
            }
            Some(all)
        };
        let features = (0..features.len()).map(feature).collect::<Option<_>>()?;
        (values.len() <= TREES).then_some(Self { features, values })
    }

    /// Returns the sum of the leaves that `features` reach. O(features x trees), without branches.
    pub fn sum<const N: usize>(&self, features: &[u16; N]) -> i32 {
        let mut leaves: Leaves = [u16::MAX; TREES];
        for (feature, value) in self.features.iter().zip(features) {
            let reached = feature.reached.get(usize::from(*value)).copied().map_or(feature.left.len() - 1, usize::from);
            if reached > 0 {
                for (leaves, left) in leaves.iter_mut().zip(&feature.left[reached]) {
                    *leaves &= left;
                }
            }
        }
        let value = |(values, leaves): (&[i32; LEAVES], &u16)| values[leaves.trailing_zeros() as usize % LEAVES];
        self.values.iter().zip(&leaves).map(value).sum()
    }

    /// Returns the number of trees.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

/// Reads a node and those below it: values of leaves, and splits.
fn read_node<'t>(
    lines: &mut impl Iterator<Item = &'t str>,
    features: &[&str],
    tree: usize,
    leaves: &mut Vec<i32>,
    splits: &mut Vec<Split>,
) -> Option<()> {
    let line = lines.next()?;
    let Some((name, threshold)) = line.split_once(" < ") else {
        leaves.push(line.parse().ok()?);
        return (leaves.len() <= LEAVES && tree < TREES).then_some(());
    };
    let feature = features.iter().position(|feature| *feature == name)?;
    let first = leaves.len();
    read_node(lines, features, tree, leaves, splits)?;
    let on_left = (first..leaves.len()).fold(0, |bits, leaf| bits | 1 << leaf);
    splits.push(Split { feature, threshold: threshold.parse().ok()?, tree, leaves: on_left });
    read_node(lines, features, tree, leaves, splits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["age", "uses"];

    #[test]
    fn a_sum_takes_one_leaf_of_each_tree() {
        let table = "# comment\nage < 3\n\tuses < 1\n\t\t-10\n\t\t20\n\t-300\nuses < 65535\n\t1\n\t2\n7\n";
        let trees = Trees::parse(table, &NAMES).unwrap();
        assert_eq!(trees.len(), 3);
        for (features, sum) in [([2, 0], -2), ([2, 1], 28), ([3, 0], -292), ([u16::MAX, u16::MAX], -291)] {
            assert_eq!(trees.sum(&features), sum, "{features:?}");
        }
    }

    #[test]
    fn what_is_no_table_of_trees_is_refused() {
        for table in [
            "age < 3\n1\n",
            "height < 3\n1\n2\n",
            "age < x\n1\n2\n",
            "one\n",
            "0.5\n",
            "age <= 3\n1\n2\n",
            &"1\n".repeat(65),
        ] {
            assert!(Trees::parse(table, &NAMES).is_none(), "{table}");
        }
        assert_eq!(Trees::parse("", &NAMES).unwrap().sum(&[0, 0]), 0);
    }
}
