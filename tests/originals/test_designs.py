"""The five designs row by row: what each asks for, and the test that shows it.

Where something is done in another way, the row says what there is instead, and why.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = """
window | messages, doubly linked | chapters/test_messagelist: detach_from_the_middle_lets_the_neighbours_meet
window | an entry refers to its node | originals/test_originals_list: g06_entries_keep_their_identity
window | a page is a view, head and tail | chapters/test_chapter: cut_moves_the_ends_of_its_page
window | a chapter has one list, which is not copied | chapters/test_chapter: check_finds_a_message_outside_the_pages
window | add a page | chapters/test_chapter: page_comes_back_where_its_messages_belong
window | remove pages: neighbours meet | chapters/test_chapter: detach_takes_the_whole_run_and_nothing_else
window | detach a page | chapters/test_chapter: add_of_a_page_that_is_in_a_chapter_is_refused
window | segments of a developer | context/test_context_segments:
    segment_is_shown_behind_the_system_prompt_in_every_format
window | a system chapter with the recall tool | chapters/test_chapter:
    system_chapter_is_one_message_with_prompt_and_notice
window | archive and active chapter | chapters/test_chapter: archive_chapter_shows_an_compaction_as_its_list
window | n recent pages verbatim | context/test_context_rules: original_preset_archives_one_page_a_turn
window | beyond n, archived each turn | context/test_context_rules: original_preset_archives_one_page_a_turn
window | a line for each entry | context/test_context_rules: original_preset_lists_every_entry_of_every_page
window | a unique index | originals/test_originals_list: g12_indexes_survive_a_restart
window | a line shows its recalls | originals/test_originals_list:
    g17_recalled_page_shows_its_count_and_an_absolute_turn
window | rule m, never recalled | chapters/test_unload: never_recalled_is_due_after_exactly_m_turns
window | rule p, not recalled again | chapters/test_unload: stale_counts_from_the_last_recall
window | a ceiling, least recently used | chapters/test_unload: over_ceiling_unloads_the_least_recently_used_first
window | a page in the file system | originals/test_originals_list: sqlite_store_is_one_file_per_store_not_per_page
window | an unloaded page is found | memory/test_memory_feed: what_left_the_window_is_found_and_comes_back
window | a native recall tool | context/test_context_recall: answers_serve_the_calls_of_the_context_only
window | ATTP | tools/attp/test_attp_reply: parse_whole_document
window | a recall counts | context/test_context_recall: recall_is_counted_once_per_turn_and_changes_no_byte
window | a recalled page stands in the window | context/test_context_recall: recalled_page_is_listed_again
window | load relinks | context/test_context_stores: restart_renders_the_same_bytes
memoryos | a queue of ten, first in first out | memory/tiers/test_rules: presets_are_the_values_of_the_designs
memoryos | the queue overflows | memory/test_tiers_stored: batch_is_handed_over_as_one
memoryos | vector and keywords of a page | memory/tiers/test_chains: names_and_labels_are_no_content
memoryos | continuity, by a model too | memory/model/test_steps: pages_go_where_the_model_puts_them
memoryos | chains, their overview in all pages | memory/test_tiers_stored: chain_when_a_page_of_it_goes | one row a
    chain
memoryos | an overview that is revised | memory/tiers/test_chains: overview_tells_the_beginning_and_the_latest
memoryos | at most two topics | memory/model/test_steps: third_theme_is_left_out
memoryos | cosine and Jaccard, 0.6, five | memory/tiers/test_episodes:
    best_is_the_highest_score_at_or_above_the_threshold
memoryos | heat | memory/tiers/test_heat: heat_is_the_weighted_sum_of_the_paper
memoryos | the hottest first, reset | memory/tiers/test_heat: every_hot_episode_is_seen_when_the_hottest_is_analysed
memoryos | 2,000 episodes, least used leave | memory/tiers/test_heat: eviction_orders_by_lifetime_heat_or_by_use
memoryos | 100 facts | memory/model/test_rules_used: lists_of_facts_are_as_long_as_the_rules_say
memoryos | one assistant for users | memory/model/test_steps: traits_and_facts_are_learned | facts of the assistant
    are kept for
    each owner: what it did for one user must not reach another
memoryos | storage backends | memory/test_tiered: memory_in_a_file_of_its_own_outlives_its_store
profile | heat 5: profile and knowledge | memory/model/test_steps: traits_and_facts_are_learned
profile | 90 dimensions, any list | memory/model/test_rules_used: dimensions_that_are_not_asked_for_are_not_taken |
    the preset has the 51 that are named
profile | levels, versions | memory/tiers/test_profile: replacing_keeps_the_versions_before
profile | knowledge of both sides | memory/tiers/test_facts: facts_of_an_assistant_are_what_it_did
profile | parsing of any answer | memory/model/test_bad_answers:
    step_stays_within_its_bounds_when_a_model_says_anything
profile | a search is a visit | memory/test_derived: an_episode_that_answers_is_used
profile | retrieval in parallel | memory/test_searching: search_passes_what_is_asked_and_excludes_what_is_shown |
    one search
    under a lock, of some milliseconds
profile | sessions, then pages | memory/retrieval/test_ranking: rank_of_chinese_talk_finds_four_of_five | pages are
    ranked
    directly: two stages find less (`python -m benchmarks.recall`, "two stages")
profile | a queue of seven | companion/test_companion: memory_when_the_analysis_asks_for_it
profile | knowledge by vector | memory/test_derived: a_fact_is_found_with_its_page
profile | knowledge of the assistant | memory/retrieval/test_facts_found: *
profile | six parts of an answer | companion/test_memory_prompt: text_when_there_is_all
profile | an overview beside a page | companion/test_memory_prompt: a_page_tells_what_its_talk_was_about
profile | relationship, metadata | companion/test_companion: request_when_it_is_sent
profile | history with times | context/test_context_times: *
profile | thirty words | companion/test_companion: conversation_when_it_is_chinese | in the language of the user
profile | stored after the answer | companion/test_companion: respond_when_the_model_answers
profile | prompts can be replaced | memory/model/test_rules_used: a_prompt_of_ones_own_is_sent
layers | a queue of 200, 50 leave | memory/tiers/test_rules: presets_are_the_values_of_the_designs
layers | vectors at entry | memory/test_tiers_stored: page_is_embedded_once_and_a_question_once
layers | search by vector | memory/test_stored_vectors: vectors_come_back_as_rows_of_one_matrix
layers | fragments with importance | memory/tiers/test_episodes: merged_follows_what_joined
layers | fragments by keyword and time | memory/test_derived: a_day_answers_what_happened
layers | promotion at ten accesses | memory/model/test_rules_used:
    concepts_are_of_episodes_that_were_accessed_so_often
layers | concepts and relations | memory/model/test_steps: relations_have_page_and_date
layers | spreading activation | memory/tiers/test_graph: activation_is_shared_by_weight_and_decays
layers | a daily job | memory/test_sessions: session_of_two_turns_is_summarized_after_a_silence
events | events every five | memory/tiers/test_rules: presets_are_the_values_of_the_designs
events | importance above .5 | memory/model/test_rules_used: only_events_above_an_importance_are_kept
events | a daily summary | memory/tiers/test_events: daily_summary_counts_what_it_is_told
events | summaries of five conversations | memory/tiers/test_profile: conversations_of_a_profile_are_the_last_five
events | a strategy every ten | memory/model/test_rules_used: a_strategy_is_due_after_so_many_turns
events | counters | memory/tiers/test_profile: profile_of_new_pages_keeps_what_was_known
events | first phase: six turns, a role | companion/test_companion: analysis_when_it_is_asked
events | five fields | companion/test_companion: json_when_an_analysis_is_dumped
events | second phase: history and memories | companion/test_memory_prompt: text_when_there_is_all
events | streams | companion/test_companion: stream_when_the_model_streams
events | saving as a hook | companion/test_companion: what_is_saved_is_told_to_the_application_with_its_kind
events | nothing blocks | memory/test_background: appending_waits_for_no_step
"""
LISTED = [[part.strip() for part in row.split(" | ")] for row in ROWS.replace("\n    ", " ").strip().splitlines()]


def test_there_are_as_many_rows_as_the_designs_have():
    """Of each design, every row."""
    assert [sum(row[0] == name for row in LISTED) for name in ("window", "memoryos", "profile", "layers",
    "events")] == [
        25, 14, 18, 9, 12,
    ]  # fmt: skip


@pytest.mark.parametrize("row", LISTED, ids=lambda row: row[1])
def test_the_test_of_a_row_is_there(row):
    """So the list is of tests that there are."""
    file, name = row[2].split(": ")
    text = (TESTS / f"{file}.py").read_text("utf-8")
    assert name == "*" or f"def test_{name}(" in text, row
