//! Strongly connected components: what leads to itself, and an order in which nothing is freed before what leads to it.

use super::graph::Edges;

/// The components of a graph of nodes `0..next.len()`, where `next` gives the nodes that each leads to: a number for
/// each node.
///
/// Numbers begin at 0, and no component leads to one with a larger number. (Tarjan's algorithm, without recursion:
/// lists may be long.)
pub(super) fn components(next: &Edges) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut number = vec![NONE; next.len()];
    // The smallest number that a node leads to, by way of nodes that are not done.
    let mut lowest = vec![NONE; next.len()];
    let mut component = vec![NONE; next.len()];
    let (mut visited, mut complete) = (0, 0);
    // Nodes that belong to no component yet.
    let mut open: Vec<usize> = Vec::new();
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in 0..next.len() {
        if number[start] != NONE {
            continue;
        }
        path.push((start, 0));
        while let Some((node, at)) = path.last_mut() {
            let node = *node;
            if number[node] == NONE {
                (number[node], lowest[node]) = (visited, visited);
                visited += 1;
                open.push(node);
            }
            if let Some(edge) = next.of(node).get(*at) {
                *at += 1;
                let target = edge.target as usize;
                if number[target] == NONE {
                    path.push((target, 0));
                } else if component[target] == NONE {
                    lowest[node] = lowest[node].min(number[target]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                lowest[*before] = lowest[*before].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                while let Some(member) = open.pop() {
                    component[member] = complete;
                    if member == node {
                        break;
                    }
                }
                complete += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::super::graph::Edge;
    use super::*;

    fn edges(next: &[Vec<u32>]) -> Edges {
        let mut edges = Edges::default();
        for targets in next {
            edges.push(targets.iter().map(|target| Edge {
                target: *target,
                is_weak: false,
                is_at_start: true,
                is_doubtful: false,
            }));
        }
        edges
    }

    #[test]
    fn components_are_cycles_and_single_nodes_in_order() {
        // 0 -> 1 -> 2 -> 0, 2 -> 3, 3 -> 3, 4 -> 0, 5 alone.
        let next = [vec![1], vec![2], vec![0, 3], vec![3], vec![0], vec![]];
        let found = components(&edges(&next));
        assert!(found[0] == found[1] && found[1] == found[2]);
        assert!(found[3] < found[0] && found[0] < found[4]);
        assert_eq!(found.iter().max(), Some(&3));
    }

    #[test]
    fn long_lists_need_no_stack() {
        let mut next: Vec<Vec<u32>> = (1..1_000_000).map(|node| vec![node]).collect();
        next.push(Vec::new());
        let found = components(&edges(&next));
        assert_eq!((found[0], found[999_999]), (999_999, 0));
    }

    #[test]
    fn whatever_leads_back_is_one_component() {
        // Each graph of four nodes, against the definition.
        for bits in 0..1_u32 << 16 {
            let leads = |from: usize, to: usize| bits >> (4 * from + to) & 1 == 1;
            let next: Vec<Vec<u32>> = (0..4)
                .map(|from| (0..4).filter(|to| leads(from, *to as usize)).collect())
                .collect();
            let mut reaches = [[false; 4]; 4];
            for (from, row) in reaches.iter_mut().enumerate() {
                for (to, reached) in row.iter_mut().enumerate() {
                    *reached = from == to || leads(from, to);
                }
            }
            for middle in 0..4 {
                for from in 0..4 {
                    for to in 0..4 {
                        reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                    }
                }
            }
            let found = components(&edges(&next));
            for from in 0..4 {
                for to in 0..4 {
                    let same = reaches[from][to] && reaches[to][from];
                    assert_eq!(found[from] == found[to], same);
                    assert!(!reaches[from][to] || found[from] >= found[to]);
                }
            }
        }
    }
}
