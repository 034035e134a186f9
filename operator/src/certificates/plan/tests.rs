//! Whole lives, second by second, with a model of everybody who holds a certificate or a bundle.

use std::collections::BTreeMap;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn life(leaf: u64, authority: u64) -> Lifetimes {
    Lifetimes { leaf: Duration::from_secs(leaf), authority: Duration::from_secs(authority) }
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap()
}

/// The operator, the API servers and the replicas of the webhook, in one process and without cryptography.
struct World {
    state: State,
    lifetimes: Lifetimes,
    /// How long API servers take to notice a new bundle, in seconds.
    notice: i64,
    made: usize,
    issued: usize,
    /// Bundles that some API server may still hold, with the time from which none does.
    bundles: Vec<(Vec<String>, i64)>,
    /// Certificates that some replica may still serve.
    served: Vec<Leaf>,
}

impl World {
    fn new(lifetimes: Lifetimes) -> Self {
        let state = State { trusted: Some(vec![]), ..State::default() };
        let notice = seconds(lifetimes.margin());
        Self { state, lifetimes, notice, made: 0, issued: 0, bundles: Vec::new(), served: Vec::new() }
    }

    fn pass(&mut self, now: i64) -> Plan {
        let plan = plan(&self.state, at(now), self.lifetimes);
        for step in &plan.steps {
            self.carry_out(step, now);
        }
        plan
    }

    fn carry_out(&mut self, step: &Step, now: i64) {
        match step {
            Step::Drop(id) => self.state.authorities.retain(|a| a.id != *id),
            Step::AddAuthority => {
                self.made += 1;
                self.state.authorities.push(Authority {
                    id: format!("ca{}", self.made),
                    not_before: at(now),
                    not_after: at(now + seconds(self.lifetimes.authority)),
                    can_sign: true,
                    trusted_since: None,
                    signed_until: None,
                });
            }
            Step::MarkTrusted(id) => {
                let authority = self.state.authorities.iter_mut().find(|a| a.id == *id).unwrap();
                authority.trusted_since = Some(at(now));
            }
            Step::WriteBundle => {
                let bundle: Vec<String> = self.state.authorities.iter().map(|a| a.id.clone()).collect();
                let noticed = now + self.notice;
                self.bundles.iter_mut().for_each(|(_, until)| *until = (*until).min(noticed));
                self.bundles.push((bundle.clone(), i64::MAX));
                self.state.trusted = Some(bundle);
            }
            Step::IssueLeaf(signer) => {
                self.issued += 1;
                let by = match signer {
                    Signer::Newest => self.state.authorities.last_mut().unwrap(),
                    Signer::Authority(id) => self.state.authorities.iter_mut().find(|a| a.id == *id).unwrap(),
                };
                let not_after = at(now + seconds(self.lifetimes.leaf)).min(by.not_after);
                by.signed_until = by.signed_until.max(Some(not_after));
                let leaf = Leaf { issuer: by.id.clone(), not_before: at(now), not_after };
                self.served.push(leaf.clone());
                self.state.leaf = Some(leaf);
            }
        }
    }

    /// Each certificate that is still valid validates against each bundle that may still be in force.
    fn check(&mut self, now: i64) {
        self.served.retain(|l| l.not_after > at(now));
        self.bundles.retain(|(_, until)| *until > now);
        let newest = self.served.last();
        assert!(newest.is_some_and(|l| l.not_after > at(now)), "second {now}: no valid certificate");
        for leaf in &self.served {
            for (bundle, _) in &self.bundles {
                assert!(bundle.contains(&leaf.issuer), "second {now}: {leaf:?} against {bundle:?}");
            }
        }
    }

    fn live(&mut self, from: i64, to: i64, every: i64) {
        for now in (from..to).step_by(usize::try_from(every).unwrap()) {
            // A pass that changes something is followed by another, as after a watch event.
            while !self.pass(now).steps.is_empty() {}
            self.check(now);
        }
    }
}

#[test]
fn for_whole_lives_every_certificate_in_use_validates_against_every_bundle_in_force() {
    let (hour, day) = (3_600, 86_400);
    let table: [(Lifetimes, i64, i64); 6] = [
        (life(30, 60), 3_600, 1),
        (life(30, 90), 3_600, 1),
        (life(120, 600), 7_200, 1),
        (life(60, 60), 3_600, 1),
        (life(120, 120), 7_200, 7),
        (life(7 * day, 365 * day), 3 * 365 * 86_400, 6 * hour),
    ];
    for (lifetimes, until, every) in table {
        let mut world = World::new(lifetimes);
        world.live(0, until, every);
        let rotations = until / seconds(lifetimes.authority);
        assert!(
            world.made > usize::try_from(rotations).unwrap(),
            "{lifetimes:?}: {} authorities",
            world.made
        );
        assert!(world.state.authorities.len() <= 3, "{lifetimes:?}: {:?}", world.state.authorities);
        // Neither idle nor busy: about one certificate for two thirds of a life, one more at each rotation.
        let renewals = until * 3 / 2 / seconds(lifetimes.leaf.min(lifetimes.authority));
        let most = usize::try_from(2 * renewals).unwrap() + 2 * world.made + 2;
        assert!(world.issued <= most, "{lifetimes:?}: {} certificates, at most {most}", world.issued);
    }
}

#[test]
fn a_quiet_moment_has_nothing_to_do_until_the_time_that_it_names() {
    let mut world = World::new(life(600, 6_000));
    world.live(0, 10, 1);
    let mut now = 10;
    for _ in 0..50 {
        let quiet = plan(&world.state, at(now), world.lifetimes);
        assert_eq!(quiet.steps, []);
        let next = quiet.again.as_second() - at(0).as_second();
        assert!(next > now);
        assert_eq!(plan(&world.state, at(next - 1), world.lifetimes).steps, [], "before {next}");
        now = next;
        while !world.pass(now).steps.is_empty() {}
    }
}

#[test]
fn the_first_pass_makes_everything_and_serves_at_once() {
    let mut world = World::new(life(600, 6_000));
    let steps = world.pass(0).steps;
    assert_eq!(steps, [Step::AddAuthority, Step::WriteBundle, Step::IssueLeaf(Signer::Newest)]);
    assert_eq!(world.pass(1).steps, [Step::MarkTrusted("ca1".into())]);
}

#[test]
fn a_bundle_that_somebody_reset_is_written_again_and_nothing_else() {
    let mut world = World::new(life(600, 6_000));
    world.live(0, 10, 1);
    for reset in [vec![], vec!["ca1".to_owned(), String::new()], vec![String::new()]] {
        world.state.trusted = Some(reset);
        assert_eq!(world.pass(10).steps, [Step::WriteBundle]);
    }
}

#[test]
fn without_a_configuration_there_is_a_certificate_and_no_bundle() {
    let mut world = World::new(life(600, 6_000));
    world.state.trusted = None;
    assert_eq!(world.pass(0).steps, [Step::AddAuthority, Step::IssueLeaf(Signer::Newest)]);
    assert_eq!(world.pass(1).steps, []);
    world.state.trusted = Some(vec![]);
    assert_eq!(world.pass(2).steps, [Step::WriteBundle]);
}

#[test]
fn a_lost_certificate_is_made_again_by_the_trusted_authority() {
    let mut world = World::new(life(600, 6_000));
    world.live(0, 100, 1);
    world.state.leaf = None;
    assert_eq!(world.pass(100).steps, [Step::IssueLeaf(Signer::Authority("ca1".into()))]);
}

/// The Secret of the authorities is lost, not that of the certificate: what the configuration trusts is adopted.
#[test]
fn a_lost_authority_goes_on_being_trusted_until_its_certificates_are_replaced() {
    let mut world = World::new(life(600, 6_000));
    world.live(0, 100, 1);
    let lost = world.state.authorities.first_mut().unwrap();
    lost.can_sign = false;
    lost.signed_until = Some(at(100 + 600));
    world.live(100, 2_000, 1);
    let ids: BTreeMap<_, _> = world.state.authorities.iter().map(|a| (&*a.id, a.can_sign)).collect();
    assert_eq!(ids, BTreeMap::from([("ca2", true)]));
}

#[test]
fn an_operator_that_was_away_past_every_date_starts_again() {
    let mut world = World::new(life(600, 6_000));
    world.live(0, 100, 1);
    world.served.clear();
    world.bundles.clear();
    world.live(100_000, 100_100, 1);
    assert_eq!((world.made, world.state.authorities.len()), (2, 1));
}

/// As after a change of the flags: what is there has hours, not years.
#[test]
fn lives_that_become_longer_are_no_reason_to_be_busy() {
    let mut world = World::new(life(30, 90));
    world.live(0, 80, 1);
    let issued = world.issued;
    world.lifetimes = life(600, 6_000);
    world.live(80, 600, 1);
    assert!(world.issued <= issued + 6, "{} more certificates", world.issued - issued);
}

/// As after a change of the flags: nobody waits a year for the next authority.
#[test]
fn lives_that_become_shorter_count_at_once() {
    let mut world = World::new(life(7 * 86_400, 365 * 86_400));
    world.live(0, 200, 1);
    assert_eq!(world.made, 1);
    world.lifetimes = life(30, 60);
    world.notice = 2;
    world.live(200, 500, 1);
    assert!((5..=9).contains(&world.made), "{} authorities", world.made);
    assert!(world.issued < 40, "{} certificates", world.issued);
    let first = world.state.authorities.first().map(|a| &*a.id);
    assert_eq!(first, Some("ca1"), "a certificate of a week may still be served");
}
