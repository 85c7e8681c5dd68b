"""Baselines: what creating, editing, pausing, disabling, deleting and rebaselining cover, and what they leave alone."""

from __future__ import annotations

import pytest

from tests.scheduler.timeline import check


def test_nothing_before_its_creation_ever_runs() -> None:
    check("""
        09:20  create report cron="*/15 * * * *" covers=..09:20 exhausts=no
        09:20  poll next=09:30       -> nothing
        09:30  poll                  -> admit report@09:30
    """)


def test_an_instant_at_the_moment_of_creation_is_covered() -> None:
    check("""
        09:15  create report cron="*/15 * * * *" covers=..09:15
        09:15  poll                  -> nothing
    """)


@pytest.mark.parametrize(("off", "on", "reason"), [("pause", "unpause", "paused"), ("disable", "enable", "disabled")])
def test_a_switch_covers_its_interval_and_skips_the_candidate(off: str, on: str, reason: str) -> None:
    check(f"""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *"
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        09:20  {off} report actor=eve note=quiet covers=09:15..09:20  -> skip report@09:15 {reason}
        09:20  {off} report          -> nothing
        09:20  schedule report {reason}=yes candidate=none next=none
        09:30  complete hog@09:10
        09:45  poll                  -> nothing
        09:50  {on} report covers=09:20..09:50
        09:50  {on} report           -> nothing
        09:50  poll next=10:00       -> nothing
        10:00  poll                  -> admit report@10:00
    """)


def test_what_is_due_and_undecided_at_a_pause_is_covered_by_it() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:15  pause report covers=09:00..09:15
        09:16  unpause report
        09:16  poll                  -> nothing
    """)


def test_paused_and_disabled_are_two_switches() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:01  pause report
        09:02  disable report
        09:03  unpause report
        09:15  poll                  -> nothing
        09:20  enable report
        09:30  poll                  -> admit report@09:30
    """)


def test_a_downtime_is_no_pause_and_catches_up() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=latest
        09:10  crash
        09:50  poll                  -> supersede report@09:15 by 09:45, supersede report@09:30 by 09:45
                                     -> admit report@09:45
    """)


def test_runs_of_paused_disabled_and_deleted_schedules_are_offered_and_their_results_accepted() -> None:
    check("""
        09:00  create a cron="*/15 * * * *"
        09:00  create b cron="*/15 * * * *"
        09:00  create c cron="*/15 * * * *"
        09:15  poll                  -> admit a@09:15, admit b@09:15, admit c@09:15
        09:16  pause a
        09:16  disable b
        09:16  delete c
        09:17  poll                  -> offer a@09:15, offer b@09:15, offer c@09:15
        09:17  start a@09:15 b@09:15 c@09:15
        09:18  complete a@09:15
        09:18  interrupt b@09:15
        09:18  fail c@09:15
        09:19  resume b@09:15
        09:20  complete b@09:15      -> clear b@09:15
    """)


def test_an_edit_never_fires_retroactively_and_skips_the_candidate() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *"
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        09:20  edit report cron="*/5 * * * *" covers=09:15..09:20  -> skip report@09:15 edited
        09:20  complete hog@09:10
        09:20  poll                  -> nothing
        09:25  poll                  -> admit report@09:25 revision=2
    """)


def test_an_edit_says_which_revision_it_was_written_against() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:01  edit report revision=1 lateness=5m
        09:02  edit report revision=1 lateness=6m  raises=RevisionConflict
        09:02  edit report revision=2 lateness=5m  -> nothing
        09:03  schedule report revision=2 lateness=0:05:00
    """)


def test_an_edit_of_the_policy_alone_is_a_baseline_too() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=skip lateness=10m
        09:16  edit report misfire=latest covers=09:00..09:16
        09:17  poll                  -> nothing
        09:30  poll                  -> admit report@09:30 revision=2
    """)


def test_an_edited_definition_never_changes_an_admitted_run() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" target=old input='{"day":1}'
        09:15  poll                  -> admit report@09:15
        09:16  edit report target=new input='{"day":2}'
        09:17  run report@09:15 target=old
        09:17  poll                  -> offer report@09:15
        09:17  start report@09:15
        09:18  complete report@09:15
        09:30  poll                  -> admit report@09:30
        09:30  run report@09:30 target=new
    """)


def test_delete_clears_the_candidate_keeps_the_run_and_frees_no_id() -> None:
    check("""
        09:00  open slots=1
        09:00  create report cron="*/15 * * * *" overlap=parallel
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:30  poll                  -> hold report@09:30
        09:35  delete report covers=09:30..09:35  -> skip report@09:30 deleted
        09:36  poll next=none        -> nothing
        09:36  complete report@09:15
        09:37  schedule report known=yes deleted=yes listed=no
        09:37  run report@09:15 state=completed
        09:45  poll                  -> nothing
        09:46  create report cron="*/15 * * * *"  raises=DuplicateSchedule
        09:46  pause report          raises=UnknownSchedule
        09:46  delete report         raises=UnknownSchedule
        09:46  run_now report        raises=UnknownSchedule
    """)


def test_a_one_shot_that_is_late_within_its_allowance_still_runs() -> None:
    check("""
        12:05  create once once=11:58 lateness=15m covers=..11:57:59.999999 exhausts=no
        12:05  poll                  -> admit once@11:58 exhausts=yes
        12:05  schedule once exhausted=yes next=none
    """)


def test_a_one_shot_beyond_its_allowance_is_refused() -> None:
    check("""
        12:00  create once once=08:00 misfire=skip  raises=DefinitionError
        12:00  schedule once known=no
    """)


def test_a_one_shot_is_decided_once_whatever_the_outcome() -> None:
    check("""
        09:00  create missed once=10:00 misfire=skip
        09:00  create refused once=10:00
        09:00  create made-up once=10:00 misfire=latest
        09:01  host refuse=refused
        10:05  poll next=none        -> admit made-up@10:00 exhausts=yes, skip missed@10:00 misfire exhausts=yes
                                     -> skip refused@10:00 preflight exhausts=yes
        10:05  start made-up@10:00
        10:06  complete made-up@10:00
        10:06  poll                  -> nothing
    """)


@pytest.mark.parametrize(("off", "on", "reason"), [("pause", "unpause", "paused"), ("disable", "enable", "disabled")])
def test_a_one_shot_whose_time_passes_while_it_is_off_is_skipped_by_the_next_poll(
    off: str, on: str, reason: str
) -> None:
    check(f"""
        09:00  create once once=10:00
        09:30  {off} once exhausts=no
        10:00  poll                  -> skip once@10:00 {reason} exhausts=yes
        10:01  poll                  -> nothing
        10:02  {on} once
        10:03  poll                  -> nothing
    """)


def test_a_one_shot_switched_on_again_in_time_runs_and_covered_after_its_time_does_not() -> None:
    check("""
        09:00  create early once=10:00
        09:00  create late once=10:00
        09:30  pause early
        09:30  pause late
        09:50  unpause early exhausts=no
        10:00:30  unpause late covers=09:30..10:00:30 exhausts=yes
        10:00:30  poll               -> admit early@10:00
    """)


def test_an_edit_to_a_one_shot_may_name_the_near_past_above_the_watermark_only() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" lateness=10m
        09:15  poll                  -> admit report@09:15
        09:20  edit report once=09:15  raises=DefinitionError
        09:20  edit report once=09:18 covers=09:15..09:17:59.999999
        09:20  start report@09:15
        09:20  complete report@09:15
        09:20  poll                  -> admit report@09:18 exhausts=yes
    """)


def test_an_edit_brings_a_finished_one_shot_back_to_life() -> None:
    check("""
        09:00  create once once=10:00
        10:00  poll                  -> admit once@10:00
        10:00  start once@10:00
        10:01  complete once@10:00
        10:02  edit once once=11:00 exhausts=no
        11:00  poll                  -> admit once@11:00 revision=2
    """)


def test_declare_creates_does_nothing_or_edits() -> None:
    check("""
        09:00  declare report cron="*/15 * * * *"  -> create report
        09:01  declare report cron="*/15 * * * *"  -> nothing
        09:02  declare report cron="*/10 * * * *"  -> edit report revision=2
        09:03  disable report
        09:04  declare report cron="*/10 * * * *"  -> nothing
        09:04  schedule report disabled=yes
        09:05  declare once once=10:00  -> create once
        10:00  poll                  -> admit once@10:00
        11:00  declare once once=10:00  -> nothing
        11:00  delete report
        11:00  declare report cron="*/10 * * * *"  raises=DuplicateSchedule
    """)


def test_a_repeated_request_takes_effect_once() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" request=r-1
        09:00  create report cron="*/15 * * * *" request=r-1  -> nothing
        09:01  run_now report request=r-2  -> admit report#1
        09:01  run_now report request=r-2  -> nothing
    """)


def test_a_blocked_schedule_waits_and_unblock_leaves_the_rest_to_the_misfire_policy() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" misfire=latest overlap=parallel
        09:15  poll                  -> admit report@09:15
        09:16  block report reason=broken actor=eve
        09:17  poll                  -> nothing
        09:17  start report@09:15    raises=Blocked
        09:17  run_now report        raises=Blocked
        09:30  poll                  -> nothing
        09:50  unblock report
        09:50  poll                  -> supersede report@09:30 by 09:45, admit report@09:45, offer report@09:15
    """)


def test_results_are_accepted_for_runs_of_a_blocked_schedule_and_resume_is_not() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel
        09:15  poll                  -> admit report@09:15
        09:15  start report@09:15
        09:16  block report
        09:17  interrupt report@09:15
        09:17  resume report@09:15   raises=Blocked
        09:18  unblock report
        09:18  resume report@09:15
        09:19  block report
        09:20  complete report@09:15  -> clear report@09:15
    """)


def test_an_edit_does_not_lift_an_operators_block() -> None:
    check("""
        09:00  create report cron="*/15 * * * *"
        09:01  block report
        09:02  edit report cron="*/5 * * * *"
        09:05  poll                  -> nothing
        09:05  schedule report blocked=yes
    """)


def test_a_rebaseline_forward_covers_and_skips_the_candidate() -> None:
    check("""
        09:00  open slots=1
        09:00  create hog once=09:10
        09:00  create report cron="*/15 * * * *"
        09:10  poll                  -> admit hog@09:10
        09:10  start hog@09:10
        09:15  poll                  -> hold report@09:15
        10:05  rebaseline report through=09:45 covers=09:15..09:45  -> skip report@09:15 operator
        10:05  poll                  -> hold report@10:00
        10:06  rebaseline report through=11:00  raises=DefinitionError
    """)


def test_a_rebaseline_back_acts_as_a_regression_of_one_schedule() -> None:
    check("""
        09:00  create report cron="*/15 * * * *" overlap=parallel misfire=skip
        09:15  poll                  -> admit report@09:15
        09:40  poll                  -> skip report@09:30 misfire, offer report@09:15
        09:41  rebaseline report through=09:10
        09:41  start report@09:15
        09:42  edit report misfire=latest
        09:42  rebaseline report through=09:10
        09:42  poll                  -> admit report@09:30
    """)


def test_pausing_covers_no_part_of_the_current_period() -> None:
    check("""
        10:00  create daily once_per=day covers=..2026-03-01T23:59:59.999999Z
        10:01  pause daily covers=2026-03-01T23:59:59.999999Z..2026-03-01T23:59:59.999999Z
        10:02  poll                  -> nothing
        2026-03-04T10:00Z  unpause daily covers=2026-03-01T23:59:59.999999Z..2026-03-03T23:59:59.999999Z
        10:00  poll                  -> admit daily@00:00
        10:00  pause daily
        10:01  unpause daily
        10:02  poll                  -> offer daily@00:00
    """)
