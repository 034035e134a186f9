//! The decisions, over records as they were read. No client and no clock.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};

/// The term of a record that does not state one.
const TERM: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Nobody holds it any more: write ourselves in.
    Acquire,
    /// It is ours, perhaps from before a restart.
    Renew,
    /// Somebody holds it.
    Wait,
}

/// What to do about a record that has not changed for `unchanged_for`, on our clock.
pub(super) fn next_move(lease: Option<&LeaseSpec>, unchanged_for: Duration, me: &str) -> Move {
    let Some(lease) = lease else { return Move::Acquire };
    match lease.holder_identity.as_deref() {
        None | Some("") => Move::Acquire,
        Some(holder) if holder == me => Move::Renew,
        Some(_) if unchanged_for > term(lease) => Move::Acquire,
        Some(_) => Move::Wait,
    }
}

/// The term that a record states.
pub(super) fn term(lease: &LeaseSpec) -> Duration {
    lease.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).map_or(TERM, Duration::from_secs)
}

/// Who holds the record, if anybody.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|h| !h.is_empty())
}

/// The record with `me` as its holder from `now` on; `resourceVersion` and everything else stay.
pub(super) fn held(mut lease: Lease, me: &str, term: Duration, now: Timestamp) -> Lease {
    let changes_hands = holder(&lease) != Some(me);
    let spec = lease.spec.get_or_insert_default();
    if changes_hands {
        spec.acquire_time = Some(MicroTime(now));
        spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
    }
    spec.holder_identity = Some(me.to_owned());
    spec.lease_duration_seconds = Some(i32::try_from(term.as_secs()).unwrap_or(i32::MAX).max(1));
    spec.renew_time = Some(MicroTime(now));
    lease
}

/// The record given back: the next one may take it at once.
pub(super) fn released(mut lease: Lease, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = None;
    // The API server refuses 0; client-go writes 1 as well.
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(MicroTime(now));
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(15),
            ..Default::default()
        }
    }

    #[test]
    fn a_silent_holder_loses_the_lease_after_its_term_and_not_before() {
        let after = |s| next_move(Some(&of("other")), Duration::from_secs(s), "me");
        assert_eq!((after(0), after(15), after(16)), (Move::Wait, Move::Wait, Move::Acquire));
    }

    #[test]
    fn a_free_lease_is_taken_and_ones_own_is_renewed() {
        assert_eq!(next_move(None, Duration::ZERO, "me"), Move::Acquire);
        assert_eq!(next_move(Some(&of("")), Duration::ZERO, "me"), Move::Acquire);
        assert_eq!(next_move(Some(&LeaseSpec::default()), Duration::ZERO, "me"), Move::Acquire);
        assert_eq!(next_move(Some(&of("me")), Duration::ZERO, "me"), Move::Renew);
    }

    #[test]
    fn a_nonsensical_term_counts_as_the_usual_one() {
        let odd = LeaseSpec { lease_duration_seconds: Some(-1), ..of("other") };
        assert_eq!(next_move(Some(&odd), Duration::from_secs(14), "me"), Move::Wait);
    }

    #[test]
    fn transitions_count_changes_of_hands_only() {
        let at = |s| Timestamp::from_second(s).unwrap();
        let term = Duration::from_secs(15);
        let first = held(Lease::default(), "a", term, at(1));
        let again = held(first.clone(), "a", term, at(2));
        let other = held(released(again.clone(), at(3)), "b", term, at(4));
        let of = |l: &Lease| {
            let spec = l.spec.clone().unwrap();
            (spec.lease_transitions, spec.acquire_time.map(|t| t.0.as_second()))
        };
        assert_eq!(
            (of(&first), of(&again), of(&other)),
            ((Some(0), Some(1)), (Some(0), Some(1)), (Some(1), Some(4)))
        );
        assert_eq!(holder(&released(other, at(5))), None);
    }
}
