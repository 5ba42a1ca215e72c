//! A worker out of rotation: for a heap snapshot, for an operator, and for both.

use super::*;

const FOREVER: LifecycleEvent = LifecycleEvent::Drain { until: None };
const FINISHED: LifecycleState = LifecycleState::Aside { finished: true };
const BUSY: LifecycleState = LifecycleState::Aside { finished: false };

fn idle_and_drained() -> Life {
    ready().on(FOREVER).does(&[Action::Withdraw]).is(BUSY).on(LifecycleEvent::Finished).does(&[]).is(FINISHED)
}

#[test]
fn a_drained_worker_stays_out_until_it_is_put_back() {
    let life = idle_and_drained();
    assert_eq!(life.life().deadline(), None);
    life.on(LifecycleEvent::Undrain).does(&[Action::Join]).is(LifecycleState::Ready);
    spawned(settings()).on(FOREVER).does(&[]);
    assert!(spawned(settings()).on(FOREVER).life().drain().is_none(), "one that boots is not drained");
}

#[test]
fn a_drain_ends_at_its_time() {
    let begun = ready();
    let until = Some(begun.now + 10 * SECOND);
    let life = begun.on(LifecycleEvent::Drain { until }).on(LifecycleEvent::Finished);
    assert_eq!(life.life().deadline(), until);
    let life = life.at_deadline().does(&[Action::Join]).is(LifecycleState::Ready);
    assert!(life.life().drain().is_none());
}

#[test]
fn a_worker_that_comes_back_first_finishes_its_requests_but_not_for_long() {
    let coming = || ready().on(FOREVER).on(LifecycleEvent::Undrain).does(&[]).is(BUSY);
    coming().on(LifecycleEvent::Finished).does(&[Action::Join]).is(LifecycleState::Ready);
    let slow = coming();
    let asked = slow.now;
    let back = slow.at_deadline().does(&[Action::Join]).is(LifecycleState::Ready);
    assert_eq!(back.now - asked, SECOND);
    coming().on(FOREVER).on(LifecycleEvent::Finished).does(&[]).is(FINISHED);
}

#[test]
fn a_snapshot_and_a_drain_both_hold_a_worker_out() {
    let both = || idle_and_drained().on(LifecycleEvent::SetAside).does(&[]).is(FINISHED);
    both()
        .on(LifecycleEvent::PutBack)
        .does(&[])
        .is(FINISHED)
        .on(LifecycleEvent::Undrain)
        .does(&[Action::Join]);
    both()
        .on(LifecycleEvent::Undrain)
        .does(&[])
        .is(FINISHED)
        .on(LifecycleEvent::PutBack)
        .does(&[Action::Join]);
    let begun = ready();
    let until = Some(begun.now + SECOND);
    let life =
        begun.on(LifecycleEvent::Drain { until }).on(LifecycleEvent::Finished).on(LifecycleEvent::SetAside);
    assert_eq!(life.life().deadline(), None, "the snapshot is not cut short");
    life.after(5 * SECOND).on(LifecycleEvent::PutBack).does(&[]).at_deadline().does(&[Action::Join]);
}

#[test]
fn a_new_process_is_in_rotation() {
    let life = idle_and_drained().dies().boots_again().on(LifecycleEvent::Listening);
    assert!(life.does(&[Action::Join]).is(LifecycleState::Ready).life().drain().is_none());
}

#[test]
fn a_worker_that_stands_still_in_its_snapshot_gets_no_requests_and_is_replaced() {
    for life in [ready(), idle_and_drained()] {
        let life = life.on(LifecycleEvent::SetAside).on(LifecycleEvent::Finished).is(FINISHED);
        let life = life.on(LifecycleEvent::StandsStill).does(&[Action::Kill(KillReason::Hung)]);
        let life = life.gets_killed().does(&[Action::AskTurn]).boots_again().on(LifecycleEvent::Listening);
        assert!(life.does(&[Action::Join]).life().drain().is_none());
    }
    ready().on(LifecycleEvent::StandsStill).does(&[]).is(LifecycleState::Ready);
}
