//! From a model id to the attempts that may answer it, in order.

use std::sync::Arc;

use rand::RngExt as _;

use super::snapshot::Target;
use super::{Model, Snapshot, Upstream};

/// One upstream to try, with its own name for the model.
#[derive(Clone)]
pub struct Attempt {
    pub upstream: Arc<Upstream>,
    pub model: Arc<str>,
    /// The configured model it stands for: the one asked for, or a fallback of it.
    pub settings: Arc<Model>,
}

/// The model's upstreams drawn by weight without putting back, then those of its fallbacks.
pub fn attempts(snapshot: &Snapshot, model: &Arc<Model>) -> Vec<Attempt> {
    let mut order = Vec::with_capacity(model.targets.len());
    let mut visited: Vec<Arc<Model>> = Vec::new();
    let mut waiting = vec![model.clone()];
    while let Some(model) = waiting.pop() {
        if visited.iter().any(|seen| Arc::ptr_eq(seen, &model)) {
            continue;
        }
        draw(&model, &mut order);
        let fallbacks = model.settings.fallbacks.iter().rev();
        waiting.extend(fallbacks.filter_map(|id| snapshot.models.get(id)).cloned());
        visited.push(model);
    }
    order
}

fn draw(model: &Arc<Model>, order: &mut Vec<Attempt>) {
    let mut left: Vec<&Target> = model.targets.iter().collect();
    while !left.is_empty() {
        let target = left.swap_remove(pick(&left));
        order.push(Attempt {
            upstream: target.upstream.clone(),
            model: target.model.clone(),
            settings: model.clone(),
        });
    }
}

fn pick(left: &[&Target]) -> usize {
    if left.len() == 1 {
        return 0;
    }
    let total: u64 = left.iter().map(|target| u64::from(target.weight)).sum();
    let mut mark = rand::rng().random_range(0..total.max(1));
    for (at, target) in left.iter().enumerate() {
        let weight = u64::from(target.weight);
        if mark < weight {
            return at;
        }
        mark -= weight;
    }
    0
}
