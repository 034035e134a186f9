//! What to do about the certificates at a given moment. Pure: keys are made and objects are written by others.
//!
//! An authority is trusted (its certificate is in the webhook's `caBundle`) before it signs, for long enough that
//! every API server has noticed; and it stays trusted until the last certificate that it signed has expired. So at
//! every moment each certificate that a replica may still serve validates against each bundle that an API server may
//! still hold.

use std::{fmt, time::Duration};

use jiff::Timestamp;

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Oldest first.
    pub authorities: Vec<Authority>,
    /// The webhook's certificate, if it can be used at all: readable, with its key, for the right names.
    pub leaf: Option<Leaf>,
    /// Ids of the authorities that every entry of the webhook configuration trusts; `None` if there is no
    /// configuration.
    pub trusted: Option<Vec<String>>,
}

/// A certificate authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    pub id: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// Its key is there. One that was found in a bundle has none.
    pub can_sign: bool,
    /// Since when it has been seen in the bundle.
    pub trusted_since: Option<Timestamp>,
    /// When the last certificate that it signed expires.
    pub signed_until: Option<Timestamp>,
}

/// A certificate of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub issuer: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// How long things are valid.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    pub leaf: Duration,
    pub authority: Duration,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Forget an authority.
    Drop(String),
    /// Make a new authority, the newest.
    AddAuthority,
    /// Note that an authority has been seen in the bundle.
    MarkTrusted(String),
    /// Write the bundle of all authorities, as they are after the steps before, into the configuration.
    WriteBundle,
    /// Make a new certificate for the webhook.
    IssueLeaf(Signer),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    Newest,
    Authority(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In this order; each can be repeated.
    pub steps: Vec<Step>,
    /// When there may be something to do next, if nothing happens.
    pub again: Timestamp,
}

impl Lifetimes {
    /// How long an authority is trusted before it signs: every API server watches the configuration and notices in
    /// seconds; a minute where there is time, less where lives are short.
    pub fn margin(self) -> Duration {
        (self.leaf / 12).clamp(Duration::from_secs(2), Duration::from_mins(1))
    }
}

/// A certificate is renewed when two thirds of its life are over; of the life that it would be given today, where
/// that is shorter.
fn due(not_before: Timestamp, not_after: Timestamp, life_today: Duration) -> Timestamp {
    let of_its_own = not_after.checked_sub(not_after.duration_since(not_before) / 3).unwrap_or(not_after);
    let of_today = not_before.checked_add(life_today * 2 / 3).unwrap_or(of_its_own);
    of_its_own.min(of_today)
}

pub fn plan(state: &State, now: Timestamp, lifetimes: Lifetimes) -> Plan {
    let mut steps = Vec::new();
    let (kept, dropped): (Vec<&Authority>, Vec<&Authority>) =
        state.authorities.iter().partition(|a| is_needed(a, state, now));
    steps.extend(dropped.iter().map(|a| Step::Drop(a.id.clone())));

    let newest = kept.iter().rev().find(|a| a.can_sign);
    let add = newest.is_none_or(|a| due(a.not_before, a.not_after, lifetimes.authority) <= now);
    if add {
        steps.push(Step::AddAuthority);
    }
    if let Some(trusted) = &state.trusted {
        let seen = kept.iter().filter(|a| a.trusted_since.is_none() && trusted.contains(&a.id));
        steps.extend(seen.map(|a| Step::MarkTrusted(a.id.clone())));
        let as_wanted = !add && trusted.len() == kept.len() && kept.iter().all(|a| trusted.contains(&a.id));
        if !as_wanted {
            steps.push(Step::WriteBundle);
        }
    }

    let may_sign =
        |a: &&&Authority| a.can_sign && trusted_long_enough(a, &kept, lifetimes).is_some_and(|t| t <= now);
    let signer = kept.iter().rev().find(may_sign);
    // One that has expired is none.
    match (state.leaf.as_ref().filter(|l| l.not_after > now), signer) {
        // Whoever signs is better than no certificate; the bundle is written in the same pass.
        (None, signer) => {
            steps.push(Step::IssueLeaf(signer.map_or(Signer::Newest, |a| Signer::Authority(a.id.clone()))));
        }
        (Some(leaf), Some(signer))
            if leaf.issuer != signer.id || is_renewable(leaf, signer, now, lifetimes) =>
        {
            steps.push(Step::IssueLeaf(Signer::Authority(signer.id.clone())));
        }
        // Nobody has been trusted for long: again by the one that is in the bundle with it.
        (Some(leaf), None) => {
            let same = kept.iter().find(|a| a.can_sign && a.id == leaf.issuer);
            if let Some(same) = same.filter(|a| is_renewable(leaf, a, now, lifetimes)) {
                steps.push(Step::IssueLeaf(Signer::Authority(same.id.clone())));
            }
        }
        _ => {}
    }
    Plan { again: next(state, &kept, now, lifetimes), steps }
}

/// It is time, and another one would last longer: a certificate does not outlive its authority. One that was made for
/// a longer life than today's ends later whatever happens, and is replaced all the same.
fn is_renewable(leaf: &Leaf, by: &Authority, now: Timestamp, lifetimes: Lifetimes) -> bool {
    let too_long = now.checked_add(lifetimes.leaf).is_ok_and(|end| end < leaf.not_after);
    due(leaf.not_before, leaf.not_after, lifetimes.leaf) <= now && (too_long || leaf.not_after < by.not_after)
}

/// From when an authority may sign: a margin after it was first seen in the bundle, sooner where the one before it
/// ends sooner.
fn trusted_long_enough(
    authority: &Authority,
    kept: &[&Authority],
    lifetimes: Lifetimes,
) -> Option<Timestamp> {
    let since = authority.trusted_since?;
    let before = kept.iter().rev().find(|a| a.can_sign && a.not_before < authority.not_before);
    let left = before.map(|a| a.not_after.duration_since(since) / 2).and_then(|l| Duration::try_from(l).ok());
    let margin = lifetimes.margin();
    since.checked_add(left.map_or(margin, |left| margin.min(left))).ok()
}

/// Whether something that it signed can still be in use, or will be.
fn is_needed(authority: &Authority, state: &State, now: Timestamp) -> bool {
    if authority.not_after <= now {
        return false;
    }
    let leaf = state.leaf.as_ref().filter(|l| l.not_after > now);
    let signs_now = leaf.is_some_and(|l| l.issuer == authority.id);
    // An older one that still signs keeps all newer ones waiting, so those are needed as well.
    let superseded = !signs_now
        && leaf.is_some_and(|leaf| {
            let place = |id: &str| state.authorities.iter().position(|a| a.id == id);
            place(&leaf.issuer) > place(&authority.id)
        });
    !superseded || authority.signed_until.is_some_and(|until| now < until)
}

/// The next moment at which a deadline passes.
fn next(state: &State, kept: &[&Authority], now: Timestamp, lifetimes: Lifetimes) -> Timestamp {
    let of_authorities = kept.iter().flat_map(|a| {
        let renewal = a.can_sign.then(|| due(a.not_before, a.not_after, lifetimes.authority));
        [renewal, trusted_long_enough(a, kept, lifetimes), a.signed_until, Some(a.not_after)]
    });
    let of_leaf = state.leaf.as_ref().map(|l| due(l.not_before, l.not_after, lifetimes.leaf));
    let later = of_authorities.chain([of_leaf]).flatten().filter(|t| *t > now);
    later.min().unwrap_or(now)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop(id) => write!(f, "authority {id} is trusted no longer"),
            Self::AddAuthority => f.write_str("new authority"),
            Self::MarkTrusted(id) => write!(f, "authority {id} is trusted"),
            Self::WriteBundle => f.write_str("bundle written"),
            Self::IssueLeaf(Signer::Newest) => f.write_str("certificate issued by the new authority"),
            Self::IssueLeaf(Signer::Authority(id)) => write!(f, "certificate issued by {id}"),
        }
    }
}

#[cfg(test)]
mod tests;
