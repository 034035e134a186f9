//! `Node.spec.taints` is one list for everybody, so what is ours in it is remembered beside it.

use bifold_crds::{keys, node_pool::PoolTaint};
use k8s_openapi::api::core::v1::Taint;

use super::nodes::{TaintChange, Want};
use crate::pools::validate::{Applied, NodeFacts, OwnTaint};

pub fn of_pool(taint: &PoolTaint) -> OwnTaint {
    let effect = taint.effect.as_str().to_owned();
    OwnTaint { key: taint.key.clone(), value: taint.value.clone(), effect }
}

/// The list and the memory as they have to be, if they are not.
pub fn change(node: &NodeFacts<'_>, want: Option<&Want>) -> Option<TaintChange> {
    let wanted = want.map(|w| w.taints.as_slice()).unwrap_or_default();
    let (mut list, mut ours) = (Vec::new(), Vec::new());
    for there in node.taints {
        match (is_ours(node, there), wanted.iter().find(|w| w.same_slot(there))) {
            (true, None) => {}
            (true, Some(wanted)) => {
                // The time of a NoExecute taint counts from when it was added.
                list.push(Taint { value: wanted.to_taint().value, ..there.clone() });
                ours.push(wanted.clone());
            }
            (false, _) => list.push(there.clone()),
        }
    }
    for missing in wanted.iter().filter(|w| !node.taints.iter().any(|t| w.same_slot(t))) {
        list.push(missing.to_taint());
        ours.push(missing.clone());
    }
    // In the order of the pool, so that the memory does not depend on who came when.
    ours.sort();
    let applied = want.map(|w| Applied { pool: w.pool.clone(), taints: ours });
    let settled = list == node.taints && applied == node.applied && applied.is_some() == node.annotated;
    (!settled).then_some(TaintChange { taints: list, applied })
}

/// Taints of others where the pool asks for one with another value.
pub fn held<'n>(node: &'n NodeFacts<'_>, want: &Want) -> impl Iterator<Item = &'n Taint> {
    node.taints.iter().filter(|there| {
        let wanted = want.taints.iter().find(|w| w.same_slot(there));
        wanted.is_some_and(|w| !means_the_same(w, there)) && !is_ours(node, there)
    })
}

/// `os=Windows` of one vendor does what `os=windows` of a pool is for.
fn means_the_same(wanted: &OwnTaint, there: &Taint) -> bool {
    let of_os = keys::OS_TAINT_KEYS.iter().any(|k| k.eq_ignore_ascii_case(&wanted.key));
    let there = OwnTaint::of(there);
    wanted.value == there.value || (of_os && wanted.value.eq_ignore_ascii_case(&there.value))
}

/// We added it and nobody has changed it since.
fn is_ours(node: &NodeFacts<'_>, taint: &Taint) -> bool {
    node.applied.as_ref().is_some_and(|a| a.taints.contains(&OwnTaint::of(taint)))
}
