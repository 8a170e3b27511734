//! Boosted trees: sums of small decision trees over whole numbers.
//!
//! Thresholds and leaves are integers, so that a sum is the same on every machine.

/// Trees over features that the table names.
#[derive(Debug, Default)]
pub struct Trees {
    /// All trees in preorder, one behind the other.
    nodes: Vec<Node>,
    /// Where each tree begins.
    roots: Vec<u16>,
}

/// A split or a leaf, eight bytes.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Of a split, what goes left is below it; of a leaf, its value.
    value: i32,
    /// Of a split, the right child; the left one is the next node.
    right: u16,
    /// Index of the feature, or [`LEAF`].
    feature: u8,
}

const LEAF: u8 = u8::MAX;

impl Trees {
    /// Reads a table of one node a line, in preorder: `feature < n` for a split, a whole number for a leaf; spaces around a
    /// line and lines that start with `#` count for nothing. Returns `None` for what is no such table.
    pub fn parse(table: &str, features: &[&str]) -> Option<Self> {
        let mut lines =
            table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        let mut trees = Self::default();
        while lines.peek().is_some() {
            trees.roots.push(u16::try_from(trees.nodes.len()).ok()?);
            trees.read_node(&mut lines, features)?;
        }
        Some(trees)
    }

    fn read_node<'t>(&mut self, lines: &mut impl Iterator<Item = &'t str>, features: &[&str]) -> Option<()> {
        let line = lines.next()?;
        let Some((name, threshold)) = line.split_once(" < ") else {
            self.nodes.push(Node { value: line.parse().ok()?, right: 0, feature: LEAF });
            return Some(());
        };
        let feature = features.iter().position(|feature| *feature == name)?;
        let at = self.nodes.len();
        self.nodes.push(Node { value: threshold.parse().ok()?, right: 0, feature: u8::try_from(feature).ok()? });
        self.read_node(lines, features)?;
        self.nodes[at].right = u16::try_from(self.nodes.len()).ok()?;
        self.read_node(lines, features)
    }

    /// Returns the sum of the leaves that `features` lead to. O(depth) for each tree.
    pub fn sum<const N: usize>(&self, features: &[u16; N]) -> i32 {
        let leaf = |root: u16| {
            let mut at = usize::from(root);
            loop {
                let Node { value, right, feature } = self.nodes[at];
                if feature == LEAF {
                    return value;
                }
                at = if i32::from(features[usize::from(feature)]) < value { at + 1 } else { usize::from(right) };
            }
        };
        self.roots.iter().map(|&root| leaf(root)).sum()
    }

    /// Returns how many trees there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.roots.len()
    }
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
        for table in ["age < 3\n1\n", "height < 3\n1\n2\n", "age < x\n1\n2\n", "one\n", "0.5\n", "age <= 3\n1\n2\n"] {
            assert!(Trees::parse(table, &NAMES).is_none(), "{table}");
        }
        assert_eq!(Trees::parse("", &NAMES).unwrap().sum(&[0, 0]), 0);
    }
}
