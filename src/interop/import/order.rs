//! Parents before their children, so that a child can refer to what its parent has (D6).

use std::collections::HashMap;

use super::Item;

/// Brings the items into an order in which every parent that is among them stands before its children. Otherwise the
/// order stays. Of parents in a circle none can be first: one of them is a copy then.
pub(super) fn parents_first(items: &mut Vec<Item>) {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        if let Some(id) = &item.id {
            places.entry(id).or_default().push(place);
        }
    }
    let mut order = Vec::with_capacity(items.len());
    let mut visited = vec![false; items.len()];
    let mut line = Vec::new();
    for start in 0..items.len() {
        // Every item of a line of ancestors is put behind those above it.
        let mut at = vec![start];
        while let Some(place) = at.pop() {
            if std::mem::replace(visited.get_mut(place).unwrap_or(&mut true), true) {
                continue;
            }
            line.push(place);
            let parent = items.get(place).and_then(|item| item.parent.as_deref());
            at.extend(parent.and_then(|parent| places.get(parent)).into_iter().flatten());
        }
        order.extend(line.drain(..).rev());
    }
    let mut taken: Vec<Option<Item>> = std::mem::take(items).into_iter().map(Some).collect();
    items.extend(order.into_iter().filter_map(|place| taken.get_mut(place).and_then(Option::take)));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn order(sessions: &[(&str, &str)]) -> String {
        let item = |(id, parent): &(&str, &str)| Item {
            id: (!id.is_empty()).then(|| (*id).to_owned()),
            parent: (!parent.is_empty()).then(|| (*parent).to_owned()),
            ..Item::file(Path::new("f"))
        };
        let mut items: Vec<Item> = sessions.iter().map(item).collect();
        parents_first(&mut items);
        items.iter().map(|item| item.id.as_deref().unwrap_or("-")).collect()
    }

    #[test]
    fn a_parent_stands_before_its_children_and_the_rest_stays() {
        assert_eq!(order(&[("c", "b"), ("x", ""), ("b", "a"), ("a", ""), ("", "")]), "abcx-");
        assert_eq!(order(&[("b", "gone"), ("a", "")]), "ba");
        // Two files with one id, the child of which stands between them.
        assert_eq!(order(&[("a", ""), ("b", "a"), ("a", "")]), "aab");
    }

    #[test]
    fn circles_end() {
        assert_eq!(order(&[("a", "b"), ("b", "a"), ("c", "c")]), "bac");
    }
}
